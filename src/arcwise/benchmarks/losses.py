"""ArcFace, CosFace, SphereFace and sub-centre ArcFace: ours beside plain PyTorch and the libraries that are installed.

Nothing here is about speed. Each is asked the same questions at the places where such losses break: on the centre, opposite to it, in
half precision, for huge and tiny embeddings, with two classes, and past θ + m = π; and how far it is from a float64 truth on
ordinary input.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import torch

from arcwise.benchmarks.loss_trials import MANY, TRIALS, Answer, Trial, ask
from arcwise.benchmarks.peers import MARGINS, SUB_CENTRES, Absent, LossName, contenders
from arcwise.progress import Reporter


@dataclass(frozen=True)
class Finding:
    """One library's answer to one question about one loss: the worst of all seeds."""

    library: str
    loss: LossName
    question: str
    answer: Answer


@dataclass(frozen=True)
class Losses:
    """All answers, and the libraries that could not be asked."""

    findings: list[Finding]
    absent: list[Absent]
    torch: str
    seeds: int

    def to_dict(self) -> dict[str, Any]:
        result = asdict(self)
        for finding in result["findings"]:
            # JSON has no such number.
            if finding["answer"] != finding["answer"]:
                finding["answer"] = "NaN"
        return result

    def table(self) -> list[list[str]]:
        """Rows for a terminal: a library a column, a question a row, a block for each loss."""
        libraries = list(dict.fromkeys(finding.library for finding in self.findings))
        answers = {(f.library, f.loss, f.question): f.answer for f in self.findings}
        # The names are broken, so that four libraries fit beside each other on a terminal.
        title = f"{MANY.num_classes} classes, {MANY.dim}-d, s = {MANY.scale:g}, float32 · torch {self.torch}"
        rows = [[title, *(library.replace("-", "-\n").replace(" ", "\n") for library in libraries)]]
        for loss, margin in MARGINS.items():
            centres = f", {SUB_CENTRES} centres a class" if loss == "sub-centre ArcFace" else ""
            rows.append([f"{loss}, m = {margin:g}{centres}", *("" for _ in libraries)])
            for trial in TRIALS:
                cells = [_cell(trial, answers.get((library, loss, trial.key))) for library in libraries]
                rows.append([f"  {trial.words}", *cells])
        for library in self.absent:
            rows.append([f"{library.library}: {library.reason}", *("" for _ in libraries)])
        return rows


def run(*, repeat: int, reporter: Reporter) -> Losses:
    """Ask everybody everything, with `repeat` different draws; the worst answer counts."""
    everybody, absent = contenders()
    findings = []
    with reporter.stage("asking", total=len(everybody) * len(TRIALS)) as stage:
        for contender in everybody:
            stage.update(f"{contender.library}: {contender.loss}")
            for trial in TRIALS:
                answer = _worst([ask(trial, contender, seed) for seed in range(repeat)])
                findings.append(Finding(contender.library, contender.loss, trial.key, answer))
                stage.advance()
    return Losses(findings, absent, torch.__version__, repeat)


def _worst(answers: list[Answer]) -> Answer:
    """A refusal before a number, NaN before any other number, then the largest."""
    words = [answer for answer in answers if isinstance(answer, str)]
    if words:
        return words[0]
    numbers = [float(answer) for answer in answers]
    return max(numbers, key=lambda number: math.inf if math.isnan(number) else number)


def _cell(trial: Trial, answer: Answer | None) -> str:
    if answer is None:
        return "–"
    if isinstance(answer, str):
        return answer
    if math.isnan(answer):
        return "NaN"
    if trial.unit.startswith("share"):
        return "none" if answer == 0 else f"{100 * answer:.1f} %"
    if trial.unit == "number":
        return f"{answer:.3g}"
    return f"{answer:.1e}"
