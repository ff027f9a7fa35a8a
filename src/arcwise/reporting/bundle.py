"""One zip with everything a reader needs to check a report and to run it again. The same folders give the same bytes."""

from __future__ import annotations

import importlib.metadata
import io
import platform
import re
import shlex
import zipfile
from collections.abc import Iterator, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath

from arcwise.atomic_write import write_file
from arcwise.errors import RunError
from arcwise.progress import Reporter
from arcwise.reporting.grouping import Group, gather
from arcwise.reporting.reading import Run
from arcwise.reporting.writing import write_report

_TIMESTAMP = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip can hold
_NEEDED = ("torch", "numpy", "safetensors", "pillow", "cyclopts", "rich", "matplotlib", "typst", "scikit-learn")
_FIGURES = (".png", ".gif")


def write_bundle(
    runs: Sequence[Path], path: Path, *, report: Path | None = None, reporter: Reporter | None = None
) -> Path:
    """Pack a report with figures, configurations, measurements and the source into a zip.

    Args:
        runs: folders that training or comparing wrote.
        path: the zip, named exactly as given. An existing file is never replaced.
        report: the PDF to pack; without one it is written first, as `write_report` does.
        reporter: who is told how it goes.

    Returns:
        The path of the zip.
    """
    reporter = reporter if reporter is not None else Reporter()
    path = Path(path)
    check_bundle_path(path)
    report = report if report is not None else write_report(runs, reporter=reporter)
    groups = gather([Path(run) for run in runs], Reporter())
    with reporter.stage("Packing the bundle") as stage:
        entries: dict[str, bytes] = {"report.pdf": report.read_bytes()}
        for group, prefix in zip(groups, _prefixes(groups), strict=True):
            entries.update(_group_entries(group, prefix))
            stage.advance()
        entries.update(_source_entries())
        entries["requirements.txt"] = requirements().encode()
        configs = sorted(name for name in entries if name.startswith("config/"))
        entries["README-run.txt"] = readme(configs, _commands(groups)).encode()
        content = _zip(entries)
        check_bundle_path(path)  # again: the report took its time
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, content)
        except OSError as error:
            raise RunError(
                f"The bundle cannot be written to {path} ({error.strerror or error}). Choose another place with --bundle."
            ) from error
    return path


def check_bundle_path(path: Path) -> None:
    """The name must end in .zip, and nothing may be there yet."""
    if path.suffix.lower() != ".zip":
        raise RunError(f"A bundle is a zip file; got the name {path.name!r}. Give a name that ends in .zip.")
    if path.exists() or path.is_symlink():
        raise RunError(
            f"{path} exists already and is not replaced. Give another name with --bundle, or delete it first."
        )


def requirements() -> str:
    """Pinned versions of what is installed here and needed to run the source again."""
    lines = []
    for package in _NEEDED:
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        # A local part such as +cpu names one build, which is not to be had everywhere.
        lines.append(f"{package}=={version.partition('+')[0]}")
    return "\n".join(lines) + "\n"


def readme(configs: Sequence[str], commands: Sequence[str]) -> str:
    """How to run everything again: each run from its settings, or the commands that were typed."""
    trains = "\n".join(
        f"    PYTHONPATH=source python -m arcwise train --config {shlex.quote(config)} --out {shlex.quote(_again(config))}"
        for config in configs
    )
    typed = "\n".join(f"    PYTHONPATH=source python -m {' '.join(command.split())}" for command in commands)
    whole = (
        f"""
Or all at once, by the commands that were typed at the time:

{typed}
"""
        if typed
        else ""
    )
    return f"""What is in here
===============

report.pdf            the report
figures/              all its figures as PNG, and the animations as GIF
config/               the resolved settings of every run, one TOML file each
results/              what was measured: comparison.json, evaluation.json and metrics.jsonl of every run
source/arcwise/       the source that made it
requirements.txt      the versions it was made with, on Python {platform.python_version()}

To run it again
===============

Unpack, open a terminal in this folder, and type:

    python -m venv .venv
    source .venv/bin/activate                (on Windows: .venv\\Scripts\\activate)
    pip install -r requirements.txt

then for each run, in a terminal of Linux or macOS:

{trains or "    PYTHONPATH=source python -m arcwise --help"}
{whole}
On Windows, set the path first with: set PYTHONPATH=source
and leave out PYTHONPATH=source in the lines above.

A run whose data came from a folder or a file of one's own needs that data at the place that its TOML file names.
"""


def _again(config: str) -> str:
    """Where a repeated run goes: config/x/softmax-seed0.toml to runs/x/softmax-seed0."""
    return str(PurePosixPath("runs", *PurePosixPath(config).with_suffix("").parts[1:]))


def _commands(groups: Sequence[Group]) -> list[str]:
    typed = [group.facts.get("command") for group in groups]
    typed += [run.config.get("command") for group in groups for run in group.all_runs]
    return list(dict.fromkeys(str(command) for command in typed if command and str(command).startswith("arcwise ")))


def _prefixes(groups: Sequence[Group]) -> list[str]:
    """One folder a group inside the bundle where there are several, so that names do not collide."""
    if len(groups) == 1:
        return [""]
    prefixes: list[str] = []
    for group in groups:
        name = group.folder.name if group.folder is not None else f"{group.data}-{group.backbone}-{group.dim}d"
        prefixes.append(_free(_plain(name), set(prefixes)))
    return prefixes


def _group_entries(group: Group, prefix: str) -> Iterator[tuple[str, bytes]]:
    if group.folder is not None:
        yield _join("results", prefix, "comparison.json"), (group.folder / "comparison.json").read_bytes()
        yield from _figure_entries(group.folder, _join("figures", prefix))
    for name, run in _named_runs(group).items():
        yield _join("config", prefix, f"{name}.toml"), (run.folder / "config.toml").read_bytes()
        for file in ("metrics.jsonl", "evaluation.json"):
            if (run.folder / file).is_file():
                yield _join("results", prefix, name, file), (run.folder / file).read_bytes()
        yield from _figure_entries(run.folder, _join("figures", prefix, name))


def _named_runs(group: Group) -> dict[str, Run]:
    named: dict[str, Run] = {}
    for run in group.all_runs:
        named[_free(_plain(run.name), set(named))] = run
    return named


def _figure_entries(folder: Path, prefix: str) -> Iterator[tuple[str, bytes]]:
    figures = folder / "figures"
    for file in sorted(figures.iterdir()) if figures.is_dir() else ():
        if file.is_file() and file.suffix.lower() in _FIGURES:
            yield _join(prefix, file.name), file.read_bytes()


def _source_entries() -> Iterator[tuple[str, bytes]]:
    """The package as it is installed, without what the interpreter caches."""

    def walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
        for entry in sorted(folder.iterdir(), key=lambda item: item.name):
            if entry.name == "__pycache__" or entry.name.startswith(".") or entry.name.endswith((".pyc", ".pyo")):
                continue
            if entry.is_dir():
                yield from walk(entry, f"{prefix}/{entry.name}")
            elif entry.is_file():
                yield f"{prefix}/{entry.name}", entry.read_bytes()

    yield from walk(resources.files("arcwise"), "source/arcwise")


def _zip(entries: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(entries):
            info = zipfile.ZipInfo(name, _TIMESTAMP)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            info.create_system = 3
            archive.writestr(info, entries[name], compresslevel=6)
    return buffer.getvalue()


def _join(*parts: str) -> str:
    return str(PurePosixPath(*(part for part in parts if part)))


def _plain(name: str) -> str:
    """A name that every system can unpack."""
    return re.sub(r'[\\/:*?"<>|\x00-\x1f]', "_", name).strip(". ") or "run"


def _free(name: str, taken: set[str]) -> str:
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name}-{number}", number + 1
    return candidate
