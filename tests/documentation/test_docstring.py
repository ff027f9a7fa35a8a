from __future__ import annotations

import pytest

from arcwise.documentation.docstring import describe

WHOLE = """The own cosine is lowered by m, which the others
    have to respect.  Someone et al. 2020, eq. 3.

    It is an idea
    in two lines.

    Prefer `ArcFace` on Sundays.

    Asks for: much.
    Take it when: it rains.

    Formula:
        target: s·(cos θ_y − m)
        other classes: s·cos θ_j

    Args:
        m: the margin,
            0 ≤ m < 2.
        kind: "a" or "b": a choice.

    Attributes:
        nothing: of interest.

    Paper:
        A. Person, B. Person. A Title: With a
        Subtitle. CVPR 2020. arXiv:2001.01234
        C. Person. Another. ECCV 2021.

        D. Person. A Third. 2022.
    """


def test_every_part_is_found() -> None:
    words = describe("Loss", WHOLE)
    assert words.headline == "The own cosine is lowered by m, which the others have to respect."
    assert words.citation == "Someone et al. 2020, eq. 3."
    assert words.idea == ["It is an idea in two lines."]
    assert words.prefer == "Prefer `ArcFace` on Sundays."
    assert (words.asks, words.when) == ("much.", "it rains.")
    assert words.formula == ["target: s·(cos θ_y − m)", "other classes: s·cos θ_j"]
    assert words.parameters == {"m": "the margin, 0 ≤ m < 2.", "kind": '"a" or "b": a choice.'}
    assert words.papers == [
        "A. Person, B. Person. A Title: With a Subtitle. CVPR 2020. arXiv:2001.01234",
        "C. Person. Another. ECCV 2021.",
        "D. Person. A Third. 2022.",
    ]
    assert words.example == ""


def test_an_example_keeps_its_lines_and_indents() -> None:
    words = describe("Loss", WHOLE + "\n    Example:\n        for x in y:\n            print(x)\n")
    assert words.example == "for x in y:\n    print(x)"


@pytest.mark.parametrize(
    ("gone", "named"),
    [
        ("Formula:\n        target: s·(cos θ_y − m)\n        other classes: s·cos θ_j", "“Formula:”"),
        ("Prefer `ArcFace` on Sundays.", "a paragraph that begins with “Prefer”"),
        ("Asks for: much.\n    ", "“Asks for:”"),
        ("It is an idea\n    in two lines.\n", "the idea"),
    ],
)
def test_a_part_that_is_missing_is_named(gone: str, named: str) -> None:
    assert gone in WHOLE
    with pytest.raises(ValueError, match=rf"^the docstring of MyLoss lacks {named}; see "):
        describe("MyLoss", WHOLE.replace(gone, ""))


def test_a_class_without_a_docstring_is_refused() -> None:
    with pytest.raises(ValueError, match="MyLoss lacks a first sentence, the idea, "):
        describe("MyLoss", None)
