from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pypdf
import pytest

from arcwise.errors import MissingExtraError, RunError
from arcwise.progress import PlainReporter
from arcwise.reporting import write_report

Maker = Callable[..., Path]


@pytest.fixture(scope="module")
def report(comparison: Path, tmp_path_factory: pytest.TempPathFactory) -> pypdf.PdfReader:
    return pypdf.PdfReader(write_report([comparison], out=tmp_path_factory.mktemp("out") / "report.pdf"))


@pytest.fixture(scope="module")
def text(report: pypdf.PdfReader) -> str:
    return " ".join(" ".join(page.extract_text().split()) for page in report.pages)


def test_the_report_is_a_pdf_of_a_sane_length(report: pypdf.PdfReader) -> None:
    assert 6 <= len(report.pages) <= 14
    assert report.metadata is not None
    assert report.metadata.title == "Softmax and ArcFace on MNIST"


@pytest.mark.parametrize(
    "words",
    [
        "98.76 ± 0.10",
        "99.11 ± 0.10",
        "4.9 ± 0.0",
        "ArcFace has the highest test accuracy, 99.11 ± 0.10 %; softmax follows with 98.76 ± 0.10 %, 0.35 percentage points lower.",
        "Softmax has the highest accuracy under noise by angle",
        "From softmax to ArcFace",
        "How the scale was chosen",
        "def margin_loss(",
        "class ArcFace(Margin):",
        "arcwise compare mnist --losses softmax,arcface --dim 3 --seeds 3",
        "weight_decay = 0.0005",
        "Licence CC BY-SA 3.0",
        "salt and pepper 0.1",
        "as arcface-seed0, except train.seed = 2.",
        "1 / ",
    ],
)
def test_the_report_says_what_was_measured_and_how(text: str, words: str) -> None:
    assert words in text


def test_no_text_leaves_the_page(report: pypdf.PdfReader) -> None:
    check_page_edges(report)


def check_page_edges(report: pypdf.PdfReader) -> None:
    """Every piece of text begins inside the page's margins."""
    for number, page in enumerate(report.pages, 1):
        right, top = float(page.mediabox.right), float(page.mediabox.top)

        def check(text: str, cm: list[float], tm: list[float], font: object, size: float) -> None:
            if text.strip():
                # Where a piece of text begins, in points; both matrices count.
                x = tm[4] * cm[0] + tm[5] * cm[2] + cm[4]
                y = tm[4] * cm[1] + tm[5] * cm[3] + cm[5]
                assert 40 <= x <= right - 40, f"page {number}: {text!r} at {x:.0f}"  # noqa: B023
                assert 20 <= y <= top - 20, f"page {number}: {text!r} at {y:.0f}"  # noqa: B023

        page.extract_text(visitor_text=check)


def test_tables_of_many_losses_go_on_over_the_next_page_under_the_same_head(
    tmp_path: Path, make_comparison: Maker
) -> None:
    losses = ["softmax", "arcface", *(f"arcface-m{number / 100:g}" for number in range(10, 60))]
    folder = make_comparison(tmp_path / "compare", losses, seeds=(0,))
    report = pypdf.PdfReader(write_report([folder]))
    check_page_edges(report)
    pages = [" ".join(page.extract_text().split()) for page in report.pages]
    assert sum("Loss: angle / distance" in page for page in pages) >= 2
    assert report.metadata is not None
    assert report.metadata.title == "52 losses compared on MNIST"
    text = " ".join(pages)
    assert "The configuration of the first run follows in full." in text
    assert text.count("snapshot_images = 2000") == 1
    assert "arcface-seed0/config.toml as softmax-seed0, except loss.name = arcface, loss.scale = 12.6" in text
    assert "Figures with a panel for each loss show 9 of the 52" in text


def test_every_figure_of_the_comparison_is_in_the_report(report: pypdf.PdfReader) -> None:
    # Four side by side, one of the margin, and a confusion matrix for each loss.
    assert sum(len(page.images) for page in report.pages) == 7


@pytest.mark.parametrize(
    "losses", [("arcface",), ("softmax", "norm-softmax", "arcface", "cosface", "sphereface"), ("softmax", "mine")]
)
def test_any_number_of_losses_makes_a_report(tmp_path: Path, make_comparison: Maker, losses: tuple[str, ...]) -> None:
    pdf = write_report([make_comparison(tmp_path / "compare", losses, seeds=(0,))])
    assert pdf == tmp_path / "compare" / "report.pdf"
    shown = " ".join(page.extract_text() for page in pypdf.PdfReader(pdf).pages)
    assert "single seed" in shown.replace("\n", " ")


def test_hard_names_of_everything_make_a_report(tmp_path: Path, make_comparison: Maker) -> None:
    hard = "#a $b$ *c* _d_ <e> @f \\ `g` \"h\" 'i' 猫 😀 " + "long" * 60
    folder = make_comparison(
        tmp_path / "#x $y @z <t> 猫", seeds=(0,), classes=[hard, "b", ""], data=hard, backbone=hard, command=hard
    )
    shown = " ".join(" ".join(page.extract_text().split()) for page in pypdf.PdfReader(write_report([folder])).pages)
    assert "#a $b$ *c* _d_ <e> @f" in shown


def test_a_health_event_is_reported(tmp_path: Path, make_run: Maker) -> None:
    pdf = write_report([make_run(tmp_path / "run", health=["the loss is stuck: the scale is too small"])])
    shown = " ".join(" ".join(page.extract_text().split()) for page in pypdf.PdfReader(pdf).pages)
    assert "step 12 (scale-too-small): the loss is stuck: the scale is too small" in shown


def test_runs_of_two_kinds_get_a_table_each_in_their_common_parent(
    tmp_path: Path, make_run: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [make_run(tmp_path / "runs" / "a"), make_run(tmp_path / "runs" / "b", data="cifar10", dim=128)]
    monkeypatch.chdir(tmp_path)
    pdf = write_report(runs)
    assert pdf.resolve() == (tmp_path / "runs" / "report.pdf").resolve()
    shown = " ".join(" ".join(page.extract_text().split()) for page in pypdf.PdfReader(pdf).pages)
    assert "They make two groups, with a table each: MNIST, vgg8, 3 dimensions, ten epochs; CIFAR-10" in shown


def test_the_same_runs_give_the_same_bytes(comparison: Path, tmp_path: Path) -> None:
    first = write_report([comparison], out=tmp_path / "a.pdf").read_bytes()
    assert write_report([comparison], out=tmp_path / "b.pdf").read_bytes() == first


def test_a_report_replaces_its_own_kind_only(comparison: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.pdf"
    target.write_text("my thesis")
    with pytest.raises(RunError, match="exists and is not a PDF, so it is not replaced"):
        write_report([comparison], out=target)
    assert target.read_text() == "my thesis"
    target.write_bytes(b"%PDF-1.7 old")
    assert write_report([comparison], out=target) == target
    assert target.stat().st_size > 10_000


def test_a_folder_as_out_holds_the_report(comparison: Path, tmp_path: Path) -> None:
    assert write_report([comparison], out=tmp_path) == tmp_path / "report.pdf"


def test_figures_that_are_missing_are_drawn(tmp_path: Path, make_run: Maker) -> None:
    pytest.importorskip("matplotlib")
    folder = make_run(tmp_path / "run", figures=False)
    pdf = write_report([folder])
    assert (folder / "figures" / "confusion.png").is_file()
    assert sum(len(page.images) for page in pypdf.PdfReader(pdf).pages) > 0


def test_a_broken_comparison_leaves_the_old_report_intact(tmp_path: Path, make_comparison: Maker) -> None:
    folder = make_comparison(tmp_path / "compare", seeds=(0,))
    (folder / "report.pdf").write_bytes(b"%PDF-old")
    (folder / "comparison.json").write_text("{")
    with pytest.raises(RunError, match="is not valid JSON"):
        write_report([folder])
    assert (folder / "report.pdf").read_bytes() == b"%PDF-old"


def test_values_alone_make_a_report_when_the_runs_are_gone(tmp_path: Path, make_comparison: Maker) -> None:
    folder = make_comparison(tmp_path / "compare", figures=False)
    for run in folder.glob("*-seed*"):
        shutil.rmtree(run)
    shown = " ".join(" ".join(page.extract_text().split()) for page in pypdf.PdfReader(write_report([folder])).pages)
    assert "The run folders are no longer there" in shown
    assert "99.11 ± 0.10" in shown


def test_without_typst_nothing_is_written(comparison: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "typst", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'arcwise\[report\]'"):
        write_report([comparison], out=tmp_path / "report.pdf")
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_place_is_one_plain_sentence(comparison: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="Choose another place with --out"):
        write_report([comparison], out=tmp_path / "file" / "report.pdf")


def test_progress_is_reported(comparison: Path, tmp_path: Path) -> None:
    heard = io.StringIO()
    write_report([comparison], out=tmp_path / "report.pdf", reporter=PlainReporter(heard))
    assert heard.getvalue().startswith("Reading the runs\n")
    assert "Writing the report · typesetting" in heard.getvalue()


def test_a_metrics_file_of_strange_lines_does_no_harm(tmp_path: Path, make_run: Maker) -> None:
    folder = make_run(tmp_path / "run")
    (folder / "metrics.jsonl").write_text('["health"]\n{"kind": "health"}\n' + json.dumps({"kind": "epoch"}) + "\n")
    assert write_report([folder]).is_file()
