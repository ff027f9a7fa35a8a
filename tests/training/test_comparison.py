from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import arcwise
from arcwise.data import Dataset
from arcwise.errors import ConfigError, RunError, TrainingError
from arcwise.progress import Reporter, Stage
from arcwise.training import Comparison, RunFolder
from arcwise.training.columns import COLUMNS
from arcwise.training.comparison import deviation, format_value

TIMINGS = ("train_seconds",)


@pytest.fixture(scope="module")
def compared(small_digits: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Two losses and two seeds; read only."""
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("comparison") / "compare"
    return arcwise.compare(small_digits, seeds=2, first_seed=5, dim=3, epochs=2, out=out, command="typed")


def table_of(rows: dict[str, list[float]], key: str = "accuracy") -> dict[str, str]:
    """The cells of one column, for losses with these values in it."""
    values = {loss: {c.key: tuple(row) if c.key == key else () for c in COLUMNS} for loss, row in rows.items()}
    comparison = Comparison(Path("none"), tuple(rows), {}, values)
    column = [c.key for c in COLUMNS].index(key) + 1
    return {row[0]: row[column] for row in comparison.table()[1:]}


def test_the_file_says_what_its_readers_expect(compared: Comparison) -> None:
    record = json.loads((compared.path / "comparison.json").read_text())
    assert (record["data"], record["dim"], record["epochs"], record["seeds"]) == ("digits", 3, 2, [5, 6])
    assert (record["command"], record["arcwise"], record["torch"]) == ("typed", arcwise.__version__, torch.__version__)
    assert record["losses"] == ["softmax", "arcface"]
    assert [column["key"] for column in record["columns"]] == [column.key for column in COLUMNS]
    assert all(column["better"] in ("higher", "lower") and column["meaning"] for column in record["columns"])
    for loss, row in record["rows"].items():
        assert row["runs"] == [f"{loss}-seed5", f"{loss}-seed6"]
        for number, name in enumerate(row["runs"]):
            evaluation = RunFolder.open(compared.path / name).evaluation()
            assert evaluation is not None
            assert {key: values[number] for key, values in row["values"].items()} == {
                column.key: evaluation[column.key] for column in COLUMNS
            }


def test_the_table_is_mean_and_deviation_over_the_seeds(compared: Comparison) -> None:
    header, *rows = compared.table()
    assert header == ["loss", *(column.title for column in COLUMNS)]
    assert [row[0] for row in rows] == ["softmax", "arcface"]
    for row in rows:
        for cell, column in zip(row[1:], COLUMNS, strict=True):
            assert cell.rstrip("*") == format_value(compared.values[row[0]][column.key], column.unit)
            assert " ± " in cell


def test_only_the_best_of_a_column_is_marked_whoever_it_is(compared: Comparison) -> None:
    softmax, arcface = compared.table()[1:]
    for number, column in enumerate(COLUMNS, 1):
        means = [statistics.fmean(compared.values[loss][column.key]) for loss in ("softmax", "arcface")]
        if softmax[number].split(" ±")[0] == arcface[number].split(" ±")[0]:
            assert "*" not in softmax[number] + arcface[number]
            continue
        softmax_wins = (means[0] > means[1]) == (column.better == "higher")
        assert (softmax[number].endswith("*"), arcface[number].endswith("*")) == (softmax_wins, not softmax_wins)


def test_every_loss_starts_from_the_same_network(compared: Comparison) -> None:
    states = {}
    for loss in compared.losses:
        for seed, path in zip((5, 6), compared.runs[loss], strict=True):
            config = RunFolder.open(path).config()
            assert config.train.seed == seed
            states[loss, seed] = load_file(path / "embeddings" / "epoch-0000.safetensors")["embeddings"]
    for seed in (5, 6):
        assert torch.equal(states["softmax", seed], states["arcface", seed])
    assert not torch.equal(states["softmax", 5], states["softmax", 6])


def test_every_loss_is_trained_alike_but_for_its_own_settings(compared: Comparison) -> None:
    first, second = (RunFolder.open(compared.runs[loss][0]).config() for loss in compared.losses)
    assert (first.data, first.backbone, first.train) == (second.data, second.backbone, second.train)
    assert first.loss != second.loss


def test_the_dictionary_holds_the_table(compared: Comparison) -> None:
    told = json.loads(json.dumps(compared.to_dict()))["losses"]
    for loss in compared.losses:
        for column in COLUMNS:
            values = compared.values[loss][column.key]
            assert told[loss][column.key]["mean"] == pytest.approx(sum(values) / 2)
            assert told[loss][column.key]["deviation"] == pytest.approx(abs(values[0] - values[1]) / 2**0.5)


def test_ties_are_not_marked_and_shared_wins_are() -> None:
    assert table_of({"a": [0.98], "b": [0.98]}) == {"a": "98.00 %", "b": "98.00 %"}
    assert table_of({"a": [0.98001], "b": [0.98]}) == {"a": "98.00 %", "b": "98.00 %"}
    assert table_of({"a": [0.98], "b": [0.98], "c": [0.9]}) == {"a": "98.00 %*", "b": "98.00 %*", "c": "90.00 %"}
    assert table_of({"a": [0.98], "b": [0.99]}, "eer") == {"a": "98.00 %*", "b": "99.00 %"}


def test_what_could_not_be_measured_is_a_dash_and_wins_nothing() -> None:
    assert table_of({"a": [], "b": []}) == {"a": "–", "b": "–"}
    assert table_of({"a": [], "b": [0.5]}, "eer") == {"a": "–", "b": "50.00 %*"}
    assert table_of({"a": [0.1], "b": [], "c": [0.2]}) == {"a": "10.00 %", "b": "–", "c": "20.00 %*"}
    assert table_of({"a": [0.1]}) == {"a": "10.00 %"}


@pytest.mark.parametrize(
    ("values", "unit", "text"),
    [
        ([0.98765], "%", "98.77 %"),
        ([0.98, 1.0], "%", "99.00 ± 1.41 %"),
        ([12.34], "°", "12.3°"),
        ([1.0, 2.0, 3.0], "s", "2.0 ± 1.0 s"),
        ([3.14159], "", "3.14"),
        ([], "%", "–"),
    ],
)
def test_values_are_written_with_their_unit(values: list[float], unit: str, text: str) -> None:
    assert format_value(values, unit) == text


def test_the_deviation_is_that_of_a_sample() -> None:
    assert deviation([1.0, 2.0, 4.0]) == pytest.approx(statistics.stdev([1, 2, 4]))
    assert deviation([7.0]) == 0


def test_a_loss_that_comes_to_nothing_is_named_and_the_others_are_compared(
    small_digits: Dataset, tmp_path: Path
) -> None:
    """A weight that is too large for float32."""
    losses = "softmax,arcface+center:1e38"
    compared = arcwise.compare(small_digits, losses=losses, dim=3, epochs=1, out=tmp_path / "compare")
    lost = "arcface+center1e+38"
    assert compared.losses == ("softmax", lost)
    assert compared.runs[lost] == ()
    assert compared.values["softmax"]["accuracy"]
    assert compared.table()[2] == [lost, *["–"] * len(COLUMNS)]
    assert list(compared.failed) == [f"{lost}-seed0"]
    assert "Training stops" in compared.failed[f"{lost}-seed0"]
    record = json.loads((tmp_path / "compare" / "comparison.json").read_text())
    assert record["losses"] == list(record["rows"]) == ["softmax"]
    assert record["failed"] == compared.failed == compared.to_dict()["failed"]


def test_where_every_run_comes_to_nothing_so_does_the_comparison(small_digits: Dataset, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="norm of the gradients became inf"):
        arcwise.compare(small_digits, losses="arcface+center:1e38", dim=3, epochs=1, out=tmp_path / "compare")


class InterruptDuring(Reporter):
    """Ctrl-C in the middle of the n-th stage with such a title."""

    def __init__(self, title: str, times: int) -> None:
        self._title, self._times = title, times

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Stage]:
        import signal

        if title.startswith(self._title):
            self._times -= 1
            if self._times == 0:
                signal.raise_signal(signal.SIGINT)
        yield Stage(title, total)


@pytest.mark.parametrize(("during", "times"), [("training", 2), ("measuring", 1), ("measuring", 4)])
def test_a_comparison_that_was_stopped_goes_on_to_the_same_numbers(
    during: str, times: int, compared: Comparison, small_digits: Dataset, tmp_path: Path
) -> None:
    options = {"seeds": 2, "first_seed": 5, "dim": 3, "epochs": 2, "out": tmp_path / "compare"}
    stopped = arcwise.compare(small_digits, **options, reporter=InterruptDuring(during, times))  # type: ignore[arg-type]
    assert stopped.stopped_by == "SIGINT"
    assert not (tmp_path / "compare" / "comparison.json").exists()
    done = arcwise.compare(small_digits, **options, resume=True)  # type: ignore[arg-type]
    assert done.stopped_by is None
    for loss in compared.losses:
        for key, values in compared.values[loss].items():
            if key not in TIMINGS:
                assert done.values[loss][key] == values


def test_a_comparison_is_never_overwritten_nor_resumed_with_other_settings(
    compared: Comparison, small_digits: Dataset
) -> None:
    before = {p: p.read_bytes() for p in compared.path.rglob("*") if p.is_file()}
    with pytest.raises(RunError, match=r"already exists and is never overwritten.*--resume.*--out DIR"):
        arcwise.compare(small_digits, dim=3, epochs=2, out=compared.path)
    with pytest.raises(RunError, match=r"softmax-seed5 was begun with other settings than this command's"):
        arcwise.compare(small_digits, first_seed=5, dim=3, epochs=3, out=compared.path, resume=True)
    assert {p: p.read_bytes() for p in compared.path.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"losses": "softmax,arcfase"}, "Did you mean arcface"),
        ({"losses": "softmax,softmax"}, "named twice"),
        ({"losses": ""}, "no loss was named"),
        ({"seeds": 0}, "seeds must be at least 1; got 0"),
        ({"backbone": "vgg9"}, "Did you mean vgg8"),
        ({"settings": {"train.lrr": "1"}}, r"Did you mean train\.lr"),
        ({"settings": {"loss.name": "softmax"}}, "Use --loss"),
        ({"device": "gpu"}, "there is no device"),
    ],
)
def test_bad_wishes_are_named_and_nothing_is_left_in_the_way(
    options: dict[str, object], message: str, small_digits: Dataset, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        arcwise.compare(small_digits, out=tmp_path / "compare", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "compare").exists() or list((tmp_path / "compare").iterdir()) == []


def test_settings_of_the_data_are_heeded(tmp_path: Path) -> None:
    done = arcwise.compare(
        "digits", losses="softmax", dim=3, epochs=1, settings={"data.image_size": "10"}, out=tmp_path / "compare"
    )
    evaluation = RunFolder.open(done.runs["softmax"][0]).evaluation()
    assert evaluation is not None
    assert evaluation["shape"] == [1, 10, 10]
