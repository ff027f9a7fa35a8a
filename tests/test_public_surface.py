from __future__ import annotations

import importlib.metadata
import importlib.resources
import subprocess
import sys
from types import ModuleType

import pytest

import arcwise

ROOMS = ["backbones", "data", "engines", "evaluation", "heads", "losses", "margins", "reporting", "training", "viewing"]


def test_the_public_names_are_these_and_no_others() -> None:
    assert arcwise.__all__ == [
        "AdaCos",
        "AdaFace",
        "ArcFace",
        "ArcwiseError",
        "CombinedMargin",
        "CosFace",
        "CurricularFace",
        "ElasticFace",
        "Head",
        "LiArcFace",
        "LongTail",
        "MVSoftmax",
        "MagFace",
        "Margin",
        "MarginHead",
        "NormSoftmax",
        "SoftmaxHead",
        "SphereFace",
        "SphereFace2",
        "Stats",
        "UniFace",
        "__version__",
        "backbones",
        "compare",
        "data",
        "engines",
        "evaluation",
        "heads",
        "load_run",
        "losses",
        "margins",
        "reporting",
        "train",
        "training",
        "tune",
        "viewing",
    ]
    assert dir(arcwise) == sorted(arcwise.__all__)


@pytest.mark.parametrize("name", arcwise.__all__)
def test_every_public_name_is_there_and_says_what_it_is(name: str) -> None:
    thing = getattr(arcwise, name)
    if name == "__version__":
        assert thing == importlib.metadata.version("arcwise")
    else:
        assert thing.__doc__
        assert isinstance(thing, ModuleType) == (name in ROOMS)
        assert callable(thing) != (name in ROOMS)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'arcwise' has no attribute 'ArcFaceLoss'"):
        _ = arcwise.ArcFaceLoss


@pytest.mark.parametrize("room", ["margins", "engines", "heads", "losses"])
def test_what_a_room_names_is_there(room: str) -> None:
    module = getattr(arcwise, room)
    for name in module.__all__:
        assert getattr(module, name).__doc__


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_arcwise_loads_nothing_heavy() -> None:
    heavy = ["torch", "numpy", "matplotlib", "PIL", "rich", "cyclopts", "safetensors"]
    assert python(f"import sys, arcwise; print([name for name in {heavy} if name in sys.modules])") == "[]"


def test_importing_the_heads_loads_no_extra() -> None:
    extras = ["matplotlib", "typst", "sklearn", "scipy", "torch._dynamo"]
    code = f"import sys, arcwise; arcwise.MarginHead; print([name for name in {extras} if name in sys.modules])"
    assert python(code) == "[]"


def test_star_import_gives_the_public_names() -> None:
    assert python("from arcwise import *; print(ArcFace(0.5).m, MarginHead.__name__)") == "0.5 MarginHead"


def test_the_types_are_shipped() -> None:
    assert importlib.resources.files("arcwise").joinpath("py.typed").is_file()
