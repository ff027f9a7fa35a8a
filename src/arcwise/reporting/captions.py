"""What stands under a figure: what it shows, and the numbers that belong to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arcwise.loss_titles import title_of
from arcwise.reporting.reading import Run
from arcwise.reporting.sentences import FEW, capitalised, listing, with_values


def caption(
    stem: str, runs: Mapping[str, Sequence[Run]], *, dim: int | None, several_seeds: bool, selection: str = ""
) -> str:
    """The caption of the figure `stem`, which shows the first run of every loss in `runs`.

    Args:
        selection: what to say where these are not all the losses that were compared.
    """
    first = {loss: listed[0] for loss, listed in runs.items() if listed}
    words = _embeddings(dim) if stem == "embeddings" else _WORDS.get(stem, f"{stem.replace('_', ' ').capitalize()}.")
    numbers = _NUMBERS[stem](first) if stem in _NUMBERS else ""
    if numbers and len(first) > FEW:
        numbers = _many_confusions(first) if stem == "confusion" else _IN_THE_TABLE.get(stem, "")
    seed = ""
    if several_seeds and stem not in {"target_logit", "margins"}:
        seeds = sorted({run.seed for run in first.values() if run.seed is not None})
        if len(seeds) == 1:
            seed = f"Seed {seeds[0]} is shown."
    return " ".join(part for part in (words, selection, numbers, seed) if part)


def _embeddings(dim: int | None) -> str:
    if dim == 2:
        return "Normalised test embeddings on the circle, coloured by class, with the class centres."
    if dim == 3:
        return "Normalised test embeddings on the sphere, coloured by class, with the class centres."
    width = f" of {dim} dimensions" if dim else ""
    return (
        f"Test embeddings{width}, coloured by class, in a projection. Angles in the picture are not the angles that were "
        "measured; the numbers are."
    )


_WORDS = {
    "embeddings_raw": (
        "The same kind of picture before normalisation: here the length of an embedding can be seen as well as its direction."
    ),
    "angles": (
        "Angles between pairs of test embeddings, of the same class (genuine) and of two classes (impostor). The less the two "
        "overlap, the better can one angle tell same from different."
    ),
    "margins": ("The curve ψ(θ) of each margin: the cosine that is used in place of cos θ for the own class."),
    "target_logit": (
        "What the margin does to the own class: its logit, and the slope of the logit, over the angle to the own centre."
    ),
    "training": "The course of training.",
    "confusion": ("Confusion between the classes on the test samples, decided by the nearest class mean in angle."),
    "decision": ("Decision regions in the plane of the embeddings, with the band that the margin asks to be empty."),
    "robustness": "Test accuracy under noise added to the images, decided by angle and by distance.",
}


def _each(first: Mapping[str, Run], key: str, factor: float, digits: int, unit: str) -> str:
    found = {loss: number for loss, run in first.items() if (number := run.number(key)) is not None}
    return listing(with_values({loss: f"{number * factor:.{digits}f}{unit}" for loss, number in found.items()}))


def _embedding_numbers(first: Mapping[str, Run]) -> str:
    own = _each(first, "own_angle", 1, 1, "°")
    return f"Mean angle to the own class mean: {own}." if own else ""


def _angle_numbers(first: Mapping[str, Run]) -> str:
    rates = []
    for loss, run in first.items():
        verification = run.evaluation.get("verification")
        threshold = verification.get("threshold_degrees") if isinstance(verification, Mapping) else None
        rate = run.number("eer")
        if rate is not None:
            at = f" at a threshold of {threshold:.1f}°" if isinstance(threshold, int | float) else ""
            rates.append(f"{title_of(loss)} {100 * rate:.2f} %{at}")
    return f"Equal error rate: {listing(rates)}." if rates else ""


def _training_numbers(first: Mapping[str, Run]) -> str:
    accuracy = _each(first, "accuracy", 100, 2, " %")
    return f"Test accuracy at the end: {accuracy}." if accuracy else ""


def _confusion_numbers(first: Mapping[str, Run]) -> str:
    said = [words for loss, run in first.items() if (words := most_confused(loss, run))]
    return " ".join(said)


def _many_confusions(first: Mapping[str, Run]) -> str:
    """The losses with the fewest and the most samples on the diagonal."""
    right = {loss: on_diagonal(run) for loss, run in first.items()}
    known = {loss: found for loss, found in right.items() if found is not None}
    fewest, most = (end(known, key=lambda loss: known[loss]) for end in (min, max))
    if known[fewest] == known[most]:
        return f"On the diagonal are {known[most][0]:g} of {known[most][1]:g} samples for each of these losses."
    return (
        f"On the diagonal are between {known[fewest][0]:g} ({title_of(fewest)}) and {known[most][0]:g} ({title_of(most)}) "
        f"of {known[most][1]:g} samples."
    )


def on_diagonal(run: Run) -> tuple[float, float] | None:
    """How many test samples are classified rightly, and of how many; None where that was not kept."""
    matrix = _square(run.evaluation.get("confusion"))
    return (sum(row[index] for index, row in enumerate(matrix)), sum(map(sum, matrix))) if matrix else None


def most_confused(loss: str, run: Run) -> str:
    """`ArcFace: 9903 of 10000 on the diagonal; most often a 4 is taken for a 9 (12 times).`"""
    matrix = _square(run.evaluation.get("confusion"))
    if not matrix:
        return ""
    names = run.classes if len(run.classes) == len(matrix) else tuple(str(index) for index in range(len(matrix)))
    total = sum(sum(row) for row in matrix)
    right = sum(matrix[index][index] for index in range(len(matrix)))
    wrong = [(matrix[i][j], -i, -j) for i in range(len(matrix)) for j in range(len(matrix)) if i != j]
    count, i, j = max(wrong, default=(0.0, 0, 0))
    most = ""
    if count:
        times = "once" if count == 1 else f"{count:g} times"
        most = f"; most often {names[-i]} is taken for {names[-j]} ({times})"
    return f"{capitalised(title_of(loss))}: {right:g} of {total:g} on the diagonal{most}."


def _square(matrix: object) -> list[list[float]]:
    """The matrix as numbers; empty where it is not one."""
    if not isinstance(matrix, list) or not all(isinstance(row, list) and len(row) == len(matrix) for row in matrix):
        return []
    if not all(isinstance(count, int | float) for row in matrix for count in row):
        return []
    return [[float(count) for count in row] for row in matrix]


def _robustness_numbers(first: Mapping[str, Run]) -> str:
    parts = []
    for loss, run in first.items():
        angle, distance = run.number("noise_accuracy"), run.number("noise_accuracy_distance")
        if angle is not None and distance is not None:
            parts.append(f"{title_of(loss)} {100 * angle:.2f} % by angle and {100 * distance:.2f} % by distance")
    return f"On average: {'; '.join(parts)}." if parts else ""


_NUMBERS = {
    "embeddings": _embedding_numbers,
    "angles": _angle_numbers,
    "training": _training_numbers,
    "confusion": _confusion_numbers,
    "robustness": _robustness_numbers,
}
_IN_THE_TABLE = {
    "embeddings": "The mean angles to the own class mean are in the table of results.",
    "angles": "The equal error rates are in the table of results.",
    "training": "The test accuracies at the end are in the table of results.",
    "robustness": "The averages are in the table of results.",
}
"""Instead of the numbers, where there are more losses than a caption can hold."""
