"""The run folder: what training writes and every later stage reads.

config.toml   metrics.jsonl   evaluation.json   mislabelled.csv   doubtful.csv   checkpoints/   embeddings/   figures/
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save
from torch import Tensor

from arcwise.atomic_write import remove_partial_files, write_file
from arcwise.errors import ConfigError, RunError
from arcwise.training.config import Config, read_config, to_toml


class RunFolder:
    """The paths and files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_file = path / "config.toml"
        self.metrics_file = path / "metrics.jsonl"
        self.evaluation_file = path / "evaluation.json"
        self.mislabelled_file = path / "mislabelled.csv"
        self.doubtful_file = path / "doubtful.csv"
        self.checkpoints = path / "checkpoints"
        self.embeddings = path / "embeddings"
        self.figures = path / "figures"

    @staticmethod
    def must_be_free(path: Path) -> None:
        """An existing folder with anything in it, or a file, is in the way."""
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RunError(
                f"{path} already exists and is never overwritten. Continue it with --resume, or write elsewhere with --out DIR."
            )

    @classmethod
    def create(cls, path: Path, config: Config) -> RunFolder:
        """Make a new run folder; one that is there already, with anything in it, is left alone."""
        cls.must_be_free(path)
        folder = cls(path)
        listed = config.data.leave_out or config.data.relabel
        try:
            doubtful = Path(listed).read_bytes() if listed else b""
        except OSError as error:
            raise ConfigError(f"the list {listed} cannot be read: {error.strerror or error}.") from None
        try:
            # The config first: a folder with a config is a run that can be resumed, whatever else is missing.
            path.mkdir(parents=True, exist_ok=True)
            write_file(folder.config_file, to_toml(config))
            if listed:
                write_file(folder.doubtful_file, doubtful)
            for part in (folder.checkpoints, folder.embeddings, folder.figures):
                part.mkdir(exist_ok=True)
        except OSError as error:
            raise RunError(
                f"the run folder {path} cannot be written: {error.strerror or error}. Choose another with --out DIR."
            ) from None
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open a run folder that is there."""
        folder = cls(path)
        if not folder.config_file.is_file():
            what = "does not exist" if not path.exists() else "holds no config.toml"
            raise RunError(f"{path} is not a run folder: it {what}.")
        for part in (folder.checkpoints, folder.embeddings, folder.figures):
            part.mkdir(exist_ok=True)
            remove_partial_files(part)
        remove_partial_files(path)
        return folder

    def config(self) -> Config:
        """The run's config."""
        return read_config(self.config_file)

    def metrics(self) -> Iterator[dict[str, Any]]:
        """The lines of metrics.jsonl; a last line that a crash cut off is passed over."""
        if not self.metrics_file.is_file():
            return
        for line in self.metrics_file.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                return
            if not isinstance(record, dict):
                return
            yield record

    def append_metrics(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Add lines to metrics.jsonl."""
        try:
            with self.metrics_file.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(record, allow_nan=True) + "\n" for record in records)
        except OSError as error:
            raise self._not_written(self.metrics_file, error) from error

    def forget_metrics_after(self, step: int) -> None:
        """Drop the lines of steps that a resumed run is going to take again."""
        kept = [json.dumps(record) + "\n" for record in self.metrics() if record.get("step", 0) <= step]
        write_file(self.metrics_file, "".join(kept))

    def save_embeddings(self, name: str, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """Write an embedding file, whole or not at all."""
        data = save({key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}, dict(metadata))
        self._write(self.embeddings / f"{name}.safetensors", data)

    def load_embeddings(self, name: str) -> dict[str, Tensor]:
        """Read an embedding file."""
        return load_file(self.embeddings / f"{name}.safetensors")

    def write_evaluation(self, evaluation: Mapping[str, Any]) -> None:
        """Write evaluation.json."""
        self._write(self.evaluation_file, json.dumps(evaluation, indent=1) + "\n")

    def write_mislabelled(self, text: str) -> None:
        """Write mislabelled.csv."""
        self._write(self.mislabelled_file, text)

    def with_own_list(self, config: Config) -> Config:
        """The config with the copy of its list of doubtful samples that was made when the run began, whatever became of the original."""
        if not self.doubtful_file.is_file():
            return config
        copy, data = str(self.doubtful_file.resolve()), config.data
        return replace(
            config,
            data=replace(data, leave_out=copy if data.leave_out else "", relabel=copy if data.relabel else ""),
        )

    def evaluation(self) -> dict[str, Any] | None:
        """The run's evaluation, if it has got that far."""
        if not self.evaluation_file.is_file():
            return None
        try:
            read: dict[str, Any] = json.loads(self.evaluation_file.read_bytes())
        except ValueError:
            raise RunError(
                f"{self.evaluation_file} is damaged: it is not JSON. Delete it and go on with --resume to measure again."
            ) from None
        return read

    def _write(self, path: Path, content: bytes | str) -> None:
        try:
            write_file(path, content)
        except OSError as error:
            raise self._not_written(path, error) from error

    def _not_written(self, path: Path, error: OSError) -> RunError:
        return RunError(
            f"{path} could not be written: {error.strerror or error}."
            " Make room or mend the folder, then go on with --resume; what was there before is intact."
        )


def snapshot_name(epoch: float) -> str:
    """epoch-0003 for a whole epoch, epoch-0000.25 for a moment within one."""
    whole = int(epoch)
    return f"epoch-{whole:04d}" if epoch == whole else f"epoch-{whole:04d}{f'{epoch - whole:.2f}'[1:]}"


def stratified_rows(labels: Tensor, count: int) -> Tensor:
    """Row numbers of about `count` samples, the same number from each class, in a fixed order."""
    classes = labels[labels >= 0].unique()
    if count >= len(labels) or not len(classes):
        return torch.arange(len(labels))[:count]
    share = max(1, count // len(classes))
    return torch.cat([(labels == c).nonzero().squeeze(1)[:share] for c in classes]).sort().values


def prepare_folder(path: Path, resume: bool) -> None:
    """Make the folder that many runs go into; one with anything in it is left alone unless it is gone on with."""
    if path.exists() and not resume and (not path.is_dir() or any(path.iterdir())):
        raise RunError(
            f"{path} already exists and is never overwritten. Continue it with --resume, or write elsewhere with --out DIR."
        )
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(
            f"the folder {path} cannot be written: {error.strerror or error}. Choose another with --out DIR."
        ) from None
