"""The training loop: steps, metrics, snapshots, checkpoints.

What a step does depends on nothing but the config, the step's number and the saved state, so that a run that was stopped anywhere and
resumed ends with the same weights as one that never stopped (on the same machine, with the same number of threads).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from arcwise.data import Dataset, augment, epoch_order
from arcwise.engines import Stats
from arcwise.errors import CheckpointError, TrainingError
from arcwise.heads import MarginHead
from arcwise.progress import Reporter, Stage
from arcwise.training.build import Model, steps_per_epoch
from arcwise.training.checkpoint import Checkpoint, latest_checkpoint, save_checkpoint
from arcwise.training.config import Config
from arcwise.training.health import HealthMonitor, Trouble
from arcwise.training.interrupt import StopRequest
from arcwise.training.judging import SHOWN_CLASSES, judged_rows, judged_unseen, means_of_shown, rows_of_spread_classes
from arcwise.training.meters import Meters
from arcwise.training.nested_state import flatten_state, unflatten_state
from arcwise.training.non_finite import first_non_finite
from arcwise.training.objective import Parts
from arcwise.training.optimiser import learning_rate, make_optimiser, set_learning_rate
from arcwise.training.run_folder import RunFolder, snapshot_name, stratified_rows

# Moments within the first epoch, where most of the movement is.
EARLY_SNAPSHOTS = (0.0, 0.05, 0.1, 0.25, 0.5)
LINES_PER_EPOCH = 20


@dataclass(frozen=True)
class _Batch:
    inputs: Tensor
    labels: Tensor


class Trainer:
    """Trains one model into one run folder."""

    def __init__(self, folder: RunFolder, config: Config, data: Dataset, model: Model, reporter: Reporter) -> None:
        self.folder, self.config, self.data, self.model, self.reporter = folder, config, data, model, reporter
        train = config.train
        self.steps_per_epoch = steps_per_epoch(config, data)
        self.total_steps = train.epochs * self.steps_per_epoch
        self.network: nn.Module = torch.compile(model.backbone) if train.compile else model.backbone  # type: ignore[assignment]
        self.optimiser = make_optimiser((model.backbone, model.objective), train)
        parts = model.objective.part_names
        self.meters, self.window = Meters(model.device, parts), Meters(model.device, parts)
        self.step = 0
        self.seconds = 0.0
        # On a GPU every look at a number waits for the device.
        self.log_every = max(1, self.steps_per_epoch // LINES_PER_EPOCH)
        self.look_every = 1 if model.device.type == "cpu" else self.log_every
        self.images, self.labels = data.train.images.to(model.device), data.train.labels.to(model.device)
        rows = (
            rows_of_spread_classes(data.test.labels, SHOWN_CLASSES)[: train.snapshot_images]
            if data.disjoint
            else stratified_rows(data.test.labels, train.snapshot_images)
        )
        self.shown_images, self.shown_labels = data.test.images[rows], data.test.labels[rows]
        self._judged: tuple[int, dict[str, float]] = (-1, {})
        moments = [*EARLY_SNAPSHOTS, *range(1, train.epochs + 1)] if train.snapshot_images else []
        # Moments that fall on the same step go by the name of the earliest.
        self.snapshots = {round(moment * self.steps_per_epoch): moment for moment in reversed(moments)}
        self.health = self._monitor()
        self._saved_at = time.monotonic()

    # -- the run ---------------------------------------------------------------------------------------------------------------

    def run(self, stop: StopRequest) -> bool:
        """Train to the end, or until `stop` is requested; says whether the end was reached. Either way the state is saved."""
        # What probability the training classes can reach is beside the point where other classes are judged: tuned there, small scales win.
        for trouble in self.health.before() if self.step == 0 and not self.data.disjoint else ():
            self._tell(trouble, step=0)
        title = f"training {self.config.loss.name} on {self.data.name}"
        with self.reporter.stage(title, total=self.total_steps) as stage:
            stage.update(done=self.step)
            if self.step == 0:
                self._snapshot()
            while self.step < self.total_steps:
                self.take_step(stage)
                if stop.requested and self.step < self.total_steps:
                    self.save()
                    return False
                due = time.monotonic() - self._saved_at > self.config.train.checkpoint_seconds
                if due and self.step < self.total_steps:
                    self.save()
        self.save()
        return True

    def take_step(self, stage: Stage | None = None) -> None:
        """One optimiser step, with what is due after it: a metrics line, the end of an epoch, a snapshot."""
        stage = stage if stage is not None else Stage("", None)
        started = time.perf_counter()
        config, model, step = self.config.train, self.model, self.step
        lr = learning_rate(step, self.total_steps, config)
        set_learning_rate(self.optimiser, lr)
        model.backbone.train()
        model.objective.train()
        batch = self._batch(step)
        with model.autocast():
            embeddings = self.network(batch.inputs)
        loss, parts = model.objective(embeddings, batch.labels)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        norm = self._clip_gradients()
        looks = (step + 1) % self.look_every == 0 or step + 1 == self.total_steps
        if looks:
            self._look(step, loss, parts, embeddings, norm, batch)
        self.optimiser.step()
        self.meters.add(loss, parts.stats, parts.values)
        self.window.add(loss, parts.stats, parts.values)
        self.step += 1
        self.seconds += time.perf_counter() - started
        stage.update(stage.text, done=self.step)
        if looks:
            self._show(stage)
        if self.step % self.log_every == 0:
            self._log(lr)
        if self.step % self.steps_per_epoch == 0:
            self._end_epoch()
        if self.step in self.snapshots:
            self._snapshot()

    def _batch(self, step: int) -> _Batch:
        epoch, number = divmod(step, self.steps_per_epoch)
        config = self.config.train
        order = self._order(epoch)
        rows = order[number * config.batch_size : (number + 1) * config.batch_size].to(self.model.device)
        generator = torch.Generator().manual_seed(config.seed * 1_000_003 + step)
        images = augment(self.images[rows], self.config.data.augment, generator)
        return _Batch(self.model.prepared(images), self.labels[rows])

    def _order(self, epoch: int) -> Tensor:
        if getattr(self, "_order_of", None) != epoch:
            self._order_of, self._current_order = (
                epoch,
                epoch_order(len(self.data.train.labels), self.config.train.seed, epoch),
            )
        return self._current_order

    # -- what is seen and written -----------------------------------------------------------------------------------------------

    def _monitor(self) -> HealthMonitor:
        head = self.model.head
        # What scale and margin can reach is known for a softmax over cosines only.
        scale, margin = None, 0.0
        if isinstance(head, MarginHead) and head.margin.becomes_norm_softmax:
            scale, margin = head.scale, math.acos(max(-1.0, min(1.0, head.margin.target_at_zero())))
        return HealthMonitor(
            num_classes=self.data.num_classes,
            dim=head.dim,
            scale=scale,
            margin=margin,
            steps_per_epoch=max(1, self.steps_per_epoch // self.look_every),
            learning_rate=self.config.train.lr,
        )

    def _look(self, step: int, loss: Tensor, parts: Parts, embeddings: Tensor, norm: Tensor, batch: _Batch) -> None:
        """Let the health monitor see the step, before the optimiser takes it.

        What it expects of a loss is that of the head alone; a term that is not finite makes the whole so.
        """
        whole, stats = float(loss.detach()), parts.stats
        of_head = float(parts.values["head_loss"]) if parts.values and math.isfinite(whole) else whole
        troubles = self.health.observe(
            step + 1,
            loss=of_head,
            accuracy=stats.accuracy(),
            embeddings=embeddings.detach(),
            labels=batch.labels,
            target_cosine=stats.target_cosine,
            centres=self.model.head.dominant_centers().detach() if (step + 1) % self.log_every == 0 else None,
            gradients_norm=float(norm),
            margin_fraction=self._margin_fraction(),
            find_origin=lambda: self._origin(batch),
        )
        for trouble in troubles:
            self._tell(trouble, step + 1)
            if trouble.fatal:
                raise TrainingError(f"{trouble.message} The last checkpoint is intact.")

    def _origin(self, batch: _Batch) -> str:
        with self.model.autocast():
            return first_non_finite(
                self.network, batch.inputs, head=self.model.objective, labels=batch.labels, prefix=""
            )

    def _clip_gradients(self) -> Tensor:
        """Shorten the gradient of the whole model to the longest that is allowed; returns its length before that."""
        parameters = [*self.model.backbone.parameters(), *self.model.objective.parameters()]
        gradients = [p.grad for p in parameters if p.grad is not None]
        norm: Tensor = torch.stack(torch._foreach_norm(gradients)).norm()
        if self.config.train.clip_norm:
            torch._foreach_mul_(gradients, (self.config.train.clip_norm / (norm + 1e-6)).clamp_max(1.0))
        return norm

    def _tell(self, trouble: Trouble, step: int) -> None:
        """Say it and write it down under the step that showed it, which is the one that a resumed run takes again."""
        self.reporter.warn(trouble.message)
        self.folder.append_metrics([{"kind": "health", "step": step, "name": trouble.name, "message": trouble.message}])

    def _show(self, stage: Stage) -> None:
        now = self.window.read()
        epoch = min(self.step // self.steps_per_epoch + 1, self.config.train.epochs)
        stage.update(
            f"epoch {epoch}/{self.config.train.epochs} · loss {now['loss']:.3f} · accuracy {100 * now['accuracy']:.1f} %"
            f" · angle {now['target_angle']:.1f}° · {self._images_per_second():,.0f} images/s",
            done=self.step,
        )

    def _log(self, lr: float) -> None:
        record = {
            "kind": "step",
            "step": self.step,
            "epoch": round(self.step / self.steps_per_epoch, 4),
            **self.window.read(),
            "images_per_second": round(self._images_per_second(), 1),
            "lr": lr,
            "scale": self.model.head.scale if isinstance(self.model.head, MarginHead) else 0.0,
            "margin_fraction": self._margin_fraction(),
        }
        self.folder.append_metrics([record])
        self.window.reset()

    def _end_epoch(self) -> None:
        epoch = self.step // self.steps_per_epoch
        test = self._judge_unseen() if self.data.disjoint else self.judge(self.data.test.images, self.data.test.labels)
        record = {
            "kind": "epoch",
            "epoch": epoch,
            "step": self.step,
            **self.meters.read(),
            **test,
            "seconds": round(self.seconds, 3),
        }
        self.folder.append_metrics([record])
        self.meters.reset()

    def judge(self, images: Tensor, labels: Tensor) -> dict[str, float]:
        """Accuracy of the head's plain logits and mean angle to the head's centres, on pictures that are not trained on."""
        embeddings = self.model.embed(images)
        with torch.no_grad():
            stats = self._stats(embeddings, labels)
        return {"test_accuracy": stats.accuracy(), "test_angle": stats.target_angle()}

    def _judge_unseen(self) -> dict[str, float]:
        """Recall@1 and the mean angle to the own class's mean, on the test part's own classes; once a step at most."""
        if self._judged[0] != self.step:
            test = self.data.test
            rows = judged_rows(test.labels)
            embeddings = self.model.embed(test.images[rows]).to(self.model.device)
            self._judged = (self.step, judged_unseen(embeddings, test.labels[rows]))
        return self._judged[1]

    def _stats(self, embeddings: Tensor, labels: Tensor) -> Stats:
        head = self.model.head.eval()
        _, stats = head(embeddings.to(self.model.device), labels.to(self.model.device), return_stats=True)
        return stats

    def _snapshot(self) -> None:
        if self.step not in self.snapshots:
            return
        moment = self.snapshots[self.step]
        embeddings = self.model.embed(self.shown_images)
        centres: Tensor = self.model.head.dominant_centers()
        if self.data.disjoint:
            accuracy = self._judge_unseen()["test_accuracy"]
            centres = means_of_shown(embeddings, self.shown_labels, len(self.data.test_classes))
        else:
            with torch.no_grad():
                accuracy = self._stats(embeddings, self.shown_labels).accuracy()
        self.folder.save_embeddings(
            snapshot_name(moment),
            {"embeddings": embeddings, "labels": self.shown_labels, "centres": centres},
            {"epoch": str(moment), "step": str(self.step), "test_accuracy": str(accuracy)},
        )

    def _images_per_second(self) -> float:
        return (
            (self.step - self._first_step)
            * self.config.train.batch_size
            / max(self.seconds - self._first_seconds, 1e-9)
        )

    _first_step = 0
    _first_seconds = 0.0

    def _margin_fraction(self) -> float:
        head = self.model.head
        return head.margin_fraction if isinstance(head, MarginHead) else 1.0

    # -- saving and resuming -----------------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write a checkpoint of everything that the next steps depend on."""
        tensors, parts = flatten_state("", self._state())
        save_checkpoint(
            self.folder.checkpoints, Checkpoint(self.step, tensors, {"parts": parts, "seconds": self.seconds})
        )
        self._saved_at = time.monotonic()

    def _state(self) -> dict[str, Any]:
        model = self.model
        state: dict[str, Any] = {
            "backbone": dict(model.backbone.state_dict()),
            "head": dict(model.head.state_dict()),
            "terms": dict(model.objective.terms.state_dict()),
            "optimiser": self.optimiser.state_dict(),
            "meters": self.meters.sums,
            "window": self.window.sums,
            "health": self.health.state_dict(),
            "random": torch.get_rng_state(),
        }
        if model.device.type == "cuda":
            state["random_cuda"] = torch.cuda.get_rng_state(model.device)
        return state

    def restore(self, *, rewind_metrics: bool = True) -> bool:
        """Go back to the newest checkpoint that is whole; says whether there is one."""
        checkpoint = latest_checkpoint(self.folder.checkpoints, warn=self.reporter.warn)
        if rewind_metrics:
            self.folder.forget_metrics_after(checkpoint.step if checkpoint else -1)
        if checkpoint is None:
            return False
        state = unflatten_state(checkpoint.state["parts"], checkpoint.tensors)
        try:
            # load_state_dict copies into what is there and so keeps devices and memory formats.
            self.model.backbone.load_state_dict(state["backbone"])
            self.model.head.load_state_dict(state["head"])
            self.model.objective.terms.load_state_dict(
                state.get("terms", {})
            )  # runs from before there were terms have none
            self.optimiser.load_state_dict(state["optimiser"])
        except (RuntimeError, ValueError, KeyError) as error:
            raise CheckpointError(
                f"the checkpoint in {self.folder.checkpoints} belongs to another model than the config describes: {error}"
            ) from None
        self.meters.sums.copy_(state["meters"])
        self.window.sums.copy_(state["window"])
        self.health.load_state_dict(state["health"])
        torch.set_rng_state(state["random"])
        if "random_cuda" in state and self.model.device.type == "cuda":
            torch.cuda.set_rng_state(state["random_cuda"], self.model.device)
        self.step = self._first_step = checkpoint.step
        self.seconds = self._first_seconds = checkpoint.state["seconds"]
        return True
