from __future__ import annotations

import re

import pytest

from arcwise.data import names
from arcwise.data._registry import KNOWN, find
from arcwise.data._sources import Address, NpmPackage


def test_the_names_are_those_that_the_documentation_promises() -> None:
    assert names() == ("digits", "mnist", "fashion-mnist", "cifar10", "omniglot")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("MNIST", "mnist"),
        ("fashion_mnist", "fashion-mnist"),
        ("FashionMNIST", "fashion-mnist"),
        ("CIFAR-10", "cifar10"),
    ],
)
def test_case_hyphens_and_underscores_do_not_matter(given: str, name: str) -> None:
    known = find(given)
    assert known is not None
    assert known.name == name


def test_an_unknown_name_is_not_found() -> None:
    assert find("mnist2") is None


@pytest.mark.parametrize("known", KNOWN.values(), ids=list(KNOWN))
def test_every_entry_is_complete_and_every_source_is_checked(known: object) -> None:
    from arcwise.data._registry import KnownSet

    assert isinstance(known, KnownSet)
    assert len(set(known.classes)) == len(known.classes) == (964 if known.name == "omniglot" else 10)
    assert known.licence
    if known.embedded:
        return
    assert re.fullmatch("[0-9a-f]{64}", known.digest)
    assert known.download_bytes > 0
    for source in known.sources:
        if isinstance(source, Address):
            assert source.base.startswith("https://")
            assert all(re.fullmatch("[0-9a-f]{64}", file.sha256) for file in source.files)
        if isinstance(source, NpmPackage):
            assert re.fullmatch("[0-9a-f]{64}", source.file.sha256)
            assert source.file.size >= known.download_bytes
