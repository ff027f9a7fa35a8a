"""From a picture, or a row of features, to an embedding: plain `nn.Module`s, known by name."""

from __future__ import annotations

from arcwise.backbones.conv4 import Conv4
from arcwise.backbones.embedding_layer import EmbeddingLayer
from arcwise.backbones.iresnet import IResNet
from arcwise.backbones.mlp import MLP
from arcwise.backbones.parameters import count_parameters
from arcwise.backbones.plain_vgg8 import PlainVGG8, build_plain_vgg8
from arcwise.backbones.registry import build, default_for, names
from arcwise.backbones.resnet18 import ResNet18
from arcwise.backbones.small import Small
from arcwise.backbones.vgg8 import VGG8

__all__ = [
    "MLP",
    "VGG8",
    "Conv4",
    "EmbeddingLayer",
    "IResNet",
    "PlainVGG8",
    "ResNet18",
    "Small",
    "build",
    "build_plain_vgg8",
    "count_parameters",
    "default_for",
    "names",
]
