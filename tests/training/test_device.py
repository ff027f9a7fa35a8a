from __future__ import annotations

import pytest
import torch

from arcwise.errors import ConfigError
from arcwise.training.device import choose_device, describe, gains_from_bf16

no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")


@no_gpu
def test_without_a_gpu_auto_is_the_cpu() -> None:
    assert choose_device() == torch.device("cpu")


@no_gpu
@pytest.mark.parametrize("name", ["cuda", "cuda:0"])
def test_a_gpu_that_is_not_there_is_said(name: str) -> None:
    with pytest.raises(
        ConfigError, match=f"'{name}' was asked for, but torch sees no NVIDIA GPU here. Use --device cpu"
    ):
        choose_device(name)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_a_gpu_beyond_the_last_is_said() -> None:
    assert choose_device().type == "cuda"
    with pytest.raises(ConfigError, match=f"there are {torch.cuda.device_count()} GPUs, counted from 0"):
        choose_device("cuda:99")


@pytest.mark.parametrize("name", ["gpu", "", "cpu:x", "CUDA 0"])
def test_an_unknown_device_is_said(name: str) -> None:
    with pytest.raises(ConfigError, match="there is no device"):
        choose_device(name)


@pytest.mark.parametrize("name", ["mps", "meta", "xpu"])
def test_a_device_that_is_not_supported_is_said(name: str) -> None:
    with pytest.raises(ConfigError, match=f"the device '{name}' is not supported. Use cpu, cuda or auto"):
        choose_device(name)


def test_the_cpu_is_described_with_its_threads() -> None:
    assert describe(torch.device("cpu")).endswith("CPU, 1 thread")
    torch.set_num_threads(2)
    assert describe(torch.device("cpu")).endswith("CPU, 2 threads")


def test_whether_bf16_gains_is_a_plain_answer() -> None:
    assert gains_from_bf16(torch.device("cpu")) in (True, False)
