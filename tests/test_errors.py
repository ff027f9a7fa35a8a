from __future__ import annotations

import pytest

from arcwise import errors
from arcwise.errors import did_you_mean


def test_the_tree_is_the_one_that_the_docstring_draws() -> None:
    parents = {
        errors.ConfigError: (errors.ArcwiseError, ValueError),
        errors.DataError: (errors.ArcwiseError,),
        errors.DownloadError: (errors.DataError,),
        errors.RunError: (errors.ArcwiseError,),
        errors.CheckpointError: (errors.RunError,),
        errors.TrainingError: (errors.ArcwiseError,),
        errors.MissingExtraError: (errors.ArcwiseError, ImportError),
    }
    for error, bases in parents.items():
        assert error.__bases__ == bases
        assert error.__name__ in (errors.__doc__ or "")
    raised = {thing for thing in vars(errors).values() if isinstance(thing, type) and issubclass(thing, Exception)}
    assert raised == {errors.ArcwiseError, *parents}


def test_a_missing_extra_names_the_install_command() -> None:
    error = errors.MissingExtraError("matplotlib", "viz", "Drawing figures")
    assert str(error) == "Drawing figures needs matplotlib, which is not installed: pip install 'arcwise[viz]'"
    with pytest.raises(ImportError):
        raise error


@pytest.mark.parametrize(
    ("given", "known", "sentence"),
    [
        ("mnits", ["mnist", "cifar10"], "Did you mean mnist? Known: mnist, cifar10."),
        ("CIFAR10", ["mnist", "cifar10"], "Did you mean cifar10? Known: mnist, cifar10."),
        ("arcface", ["ArcFace", "CosFace"], "Did you mean ArcFace? Known: ArcFace, CosFace."),
        ("quaternion", ["mnist", "cifar10"], "Known: mnist, cifar10."),
        ("", ["mnist"], "Known: mnist."),
    ],
)
def test_did_you_mean_names_the_nearest_and_then_all(given: str, known: list[str], sentence: str) -> None:
    assert did_you_mean(given, known) == sentence
    assert did_you_mean(given, iter(known)) == sentence
