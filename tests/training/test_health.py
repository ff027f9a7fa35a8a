from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache

import pytest
import torch
from torch import Tensor, nn

from arcwise.engines import Stats
from arcwise.heads import Head, MarginHead, SoftmaxHead
from arcwise.margins import ArcFace, CosFace
from arcwise.training.health import HealthMonitor, Trouble

Told = list[tuple[int, Trouble]]


@cache
def digits() -> tuple[Tensor, Tensor]:
    datasets = pytest.importorskip("sklearn.datasets", reason="the digits are inside scikit-learn")
    data = datasets.load_digits()
    return torch.tensor(data.data, dtype=torch.float32) / 16, torch.tensor(data.target)


@cache
def hundred_clouds() -> tuple[Tensor, Tensor]:
    """A hundred classes, each a cloud around a random point in 32 dimensions."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(100, 32, generator=generator)
    labels = torch.arange(4000) % 100
    return centres[labels] + 0.3 * torch.randn(4000, 32, generator=generator), labels


def mlp(dim: int, features: int = 64) -> nn.Module:
    return nn.Sequential(nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, dim))


def train(
    head: Head,
    network: nn.Module,
    data: tuple[Tensor, Tensor],
    *,
    lr: float,
    optimiser: str = "adam",
    steps: int = 400,
    spoil: Callable[[int, Tensor], Tensor] = lambda _step, inputs: inputs,
    relabel: Callable[[Tensor], Tensor] = lambda labels: labels,
    seed: int = 0,
) -> Told:
    """A real training run; says what the monitor said, and at which step. Step 0 is before the first one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(seed)
    inputs, labels = data
    parameters = [*network.parameters(), *head.parameters()]
    take = (
        torch.optim.Adam(parameters, lr=lr) if optimiser == "adam" else torch.optim.SGD(parameters, lr=lr, momentum=0.9)
    )
    margin = head.margin.target_at_zero() if isinstance(head, MarginHead) else 1.0
    monitor = HealthMonitor(
        num_classes=head.num_classes,
        dim=head.dim,
        scale=head.scale if isinstance(head, MarginHead) else None,
        margin=math.acos(margin),
        steps_per_epoch=len(inputs) // 64,
        learning_rate=lr,
    )
    told: Told = [(0, trouble) for trouble in monitor.before()]
    for step in range(1, steps + 1):
        rows = torch.randint(len(inputs), (64,), generator=generator)
        batch, answers = spoil(step, inputs[rows]), relabel(labels[rows])
        embeddings = network(batch)
        loss, stats = head(embeddings, answers, return_stats=True)
        assert isinstance(stats, Stats)
        take.zero_grad()
        loss.backward()
        troubles = monitor.observe(
            step,
            loss=float(loss.detach()),
            accuracy=stats.accuracy(),
            embeddings=embeddings,
            labels=answers,
            target_cosine=stats.target_cosine,
            centres=head.weight,
            gradients_norm=float(nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])),
            margin_fraction=head.margin_fraction if isinstance(head, MarginHead) else 1.0,
        )
        told += [(step, trouble) for trouble in troubles]
        if any(trouble.fatal for trouble in troubles):
            break
        take.step()
    torch.set_num_threads(threads)
    return told


def seeded(seed: int) -> None:
    torch.manual_seed(seed)


# ---- healthy runs


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("dim", [2, 3, 32])
@pytest.mark.parametrize("loss", ["softmax", "arcface", "cosface"])
def test_a_healthy_run_on_digits_is_told_nothing(loss: str, dim: int, seed: int) -> None:
    seeded(seed)
    head: Head
    if loss == "softmax":
        head = SoftmaxHead(dim, 10)
    else:
        head = MarginHead(dim, 10, ArcFace(0.3) if loss == "arcface" else CosFace(0.1), scale="auto")
    assert train(head, mlp(dim), digits(), lr=2e-3, seed=seed) == []


def test_a_healthy_run_with_sgd_is_told_nothing() -> None:
    seeded(0)
    assert train(SoftmaxHead(3, 10), mlp(3), digits(), lr=0.1, optimiser="sgd") == []


def test_a_healthy_run_on_a_hundred_classes_is_told_nothing() -> None:
    seeded(0)
    head = MarginHead(32, 100, ArcFace(0.3), scale=16.0)
    assert train(head, mlp(32, 32), hundred_clouds(), lr=2e-3, steps=500) == []


def test_a_margin_that_warms_up_is_told_nothing_while_the_loss_rises() -> None:
    seeded(0)
    head = MarginHead(3, 10, ArcFace(0.5), scale="auto", warmup_steps=300)
    assert train(head, mlp(3), digits(), lr=2e-3, steps=500) == []


# ---- sick runs


def only(told: Told) -> tuple[int, Trouble]:
    assert [trouble.name for _, trouble in told] == [told[0][1].name], told
    return told[0]


@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_a_scale_too_small_is_told_before_the_first_step_and_only_then(optimiser: str) -> None:
    seeded(0)
    head = MarginHead(32, 100, ArcFace(0.0), scale=0.5)
    lr = 0.002 if optimiser == "adam" else 0.1
    step, trouble = only(train(head, mlp(32, 32), hundred_clouds(), lr=lr, optimiser=optimiser))
    assert (step, trouble.name, trouble.fatal) == (0, "scale-too-small", False)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("make", "optimiser"),
    [
        (lambda: SoftmaxHead(3, 10), "sgd"),
        (lambda: MarginHead(3, 10, ArcFace(0.3), scale=10.0), "sgd"),
        (lambda: MarginHead(16, 10, ArcFace(0.3), scale=10.0), "adam"),
    ],
    ids=["softmax sgd", "arcface sgd", "arcface adam"],
)
def test_a_learning_rate_of_a_thousand_is_told_as_divergence(
    make: Callable[[], Head], optimiser: str, seed: int
) -> None:
    seeded(seed)
    head = make()
    told = train(head, mlp(head.dim), digits(), lr=1000.0, optimiser=optimiser, steps=300, seed=seed)
    assert told
    assert {trouble.name for _, trouble in told} == {"diverged"}
    assert all("The learning rate is too high" in trouble.message for _, trouble in told)
    assert all("(--lr 100)" in trouble.message for _, trouble in told)
    assert sum(not trouble.fatal for _, trouble in told) <= 1


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("margin", [False, True])
def test_a_picture_of_nan_stops_training_at_that_step(value: float, margin: bool) -> None:
    def spoil(step: int, inputs: Tensor) -> Tensor:
        if step == 17:
            inputs = inputs.clone()
            inputs[3, 5] = value
        return inputs

    seeded(0)
    head = MarginHead(3, 10, ArcFace(0.3), scale=10.0) if margin else SoftmaxHead(3, 10)
    step, trouble = only(train(head, mlp(3), digits(), lr=2e-3, spoil=spoil))
    assert (step, trouble.name, trouble.fatal) == (17, "non-finite", True)
    assert trouble.message.startswith("at step 17 the loss became nan")
    assert "parameters are left as they were before this step" in trouble.message


class Constant(nn.Module):
    """A network that has died: its answer does not depend on what it is shown."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.answer = nn.Parameter(torch.randn(dim))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.answer.expand(len(inputs), -1)


@pytest.mark.parametrize("margin", [False, True])
def test_a_network_with_a_constant_output_is_told_as_collapse(margin: bool) -> None:
    seeded(0)
    head = MarginHead(3, 10, ArcFace(0.3), scale=10.0) if margin else SoftmaxHead(3, 10)
    step, trouble = only(train(head, Constant(3), digits(), lr=1e-2))
    assert trouble.name == "collapsed"
    assert not trouble.fatal
    assert 50 <= step <= 60
    assert "collapsed to one point" in trouble.message
    assert ("--warmup-epochs" in trouble.message) == margin
    assert "(--lr 0.001)" in trouble.message


def test_a_dead_relu_at_the_end_is_told_as_embeddings_of_length_zero() -> None:
    seeded(0)
    dead = nn.Sequential(nn.Linear(64, 3), nn.ReLU())
    nn.init.constant_(dead.get_parameter("0.bias"), -100.0)
    step, trouble = only(train(SoftmaxHead(3, 10), dead, digits(), lr=1e-3))
    assert (step, trouble.name) == (1, "zero-embeddings")
    assert trouble.message.startswith("all embeddings of step 1 have length 0")


def test_labels_that_have_nothing_to_do_with_the_inputs_are_told_as_stuck() -> None:
    seeded(0)
    generator = torch.Generator().manual_seed(0)
    inputs, labels = torch.randn(1000, 8, generator=generator), torch.randint(50, (1000,), generator=generator)
    shuffle = torch.Generator().manual_seed(1)
    told = train(
        MarginHead(16, 50, ArcFace(0.0), scale=10.0),
        mlp(16, 8),
        (inputs, labels),
        lr=1e-3,
        relabel=lambda given: given[torch.randperm(len(given), generator=shuffle)],
    )
    step, trouble = only(told)
    assert trouble.name == "stuck"
    assert step >= 100
    assert "(guessing: 2 %)" in trouble.message
    assert "Check first that each label belongs to its sample" in trouble.message


def test_a_tiny_learning_rate_is_named_as_the_cause() -> None:
    seeded(0)
    inputs, labels = hundred_clouds()
    told = train(SoftmaxHead(32, 100), mlp(32, 32), (inputs, labels), lr=1e-9, optimiser="sgd")
    _, trouble = only(told)
    assert trouble.name == "stuck"
    assert "The learning rate of 1e-09 is very small. Use --lr 0.01." in trouble.message


# ---- from numbers alone


def monitor_of(
    *,
    num_classes: int = 10,
    dim: int = 128,
    scale: float | None = 10.0,
    margin: float = 0.0,
    learning_rate: float | None = None,
) -> HealthMonitor:
    return HealthMonitor(
        num_classes=num_classes, dim=dim, scale=scale, margin=margin, steps_per_epoch=100, learning_rate=learning_rate
    )


def test_trouble_with_the_settings_is_told_once() -> None:
    monitor = monitor_of(scale=0.5, num_classes=100)
    assert [trouble.name for trouble in monitor.before()] == ["scale-too-small"]
    told = [t for step in range(300) for t in monitor.observe(step, loss=4.6, accuracy=0.01)]
    assert told == []


def embeddings_around(directions: Tensor, spread: float, seed: int = 0) -> Tensor:
    return directions + spread * torch.randn(directions.shape, generator=torch.Generator().manual_seed(seed))


def test_samples_of_one_class_pointing_the_same_way_are_not_a_collapse() -> None:
    monitor = monitor_of(dim=8)
    one_class = embeddings_around(torch.eye(8)[:1].expand(32, 8), 0.01)
    for step in range(200):
        labels = torch.full((32,), 4)
        assert monitor.observe(step, loss=1.0 - step / 1000, accuracy=0.5, embeddings=one_class, labels=labels) == []


def test_ignored_samples_do_not_count_as_another_class() -> None:
    monitor = monitor_of(dim=8)
    same = torch.eye(8)[:1].expand(32, 8)
    labels = torch.full((32,), 4)
    labels[::2] = -1
    for step in range(200):
        assert monitor.observe(step, loss=1.0 - step / 1000, accuracy=0.5, embeddings=same, labels=labels) == []


def test_a_network_that_starts_out_pointing_one_way_and_moves_apart_is_not_a_collapse() -> None:
    monitor = monitor_of(dim=8)
    labels = torch.arange(32) % 8
    for step in range(200):
        embeddings = torch.ones(32, 8) + 0.02 * 1.05**step * torch.eye(8)[labels]
        assert monitor.observe(step, loss=2.0 - step / 1000, accuracy=0.2, embeddings=embeddings, labels=labels) == []


def test_collapsed_centres_are_told_when_the_embeddings_cannot_be_seen() -> None:
    monitor = monitor_of(dim=8)
    centres = embeddings_around(torch.ones(10, 8), 0.01)
    told = [t.name for step in range(100) for t in monitor.observe(step, loss=3.0, accuracy=0.1, centres=centres)]
    assert told == ["centres-collapsed"]


def test_a_trouble_is_told_again_only_after_it_went_away_and_came_back() -> None:
    monitor = monitor_of(dim=4)
    good, bad = torch.randn(16, 4), torch.zeros(16, 4)
    told = []
    for step in range(1200):
        blank = 10 <= step < 300 or 350 <= step < 400 or step >= 800
        for trouble in monitor.observe(step, loss=1.0, accuracy=0.5, embeddings=bad if blank else good):
            told.append((step, trouble.name))
    assert told == [(10, "zero-embeddings"), (800, "zero-embeddings")]


def test_no_right_answer_at_all_is_told_where_guessing_would_have_had_some() -> None:
    monitor = monitor_of(dim=4)
    torch.manual_seed(0)
    told = []
    for step in range(150):
        told += monitor.observe(step, loss=5.0, accuracy=0.0, embeddings=torch.randn(32, 4))
    assert [trouble.name for trouble in told] == ["never-right"]
    assert "guessing would have had about" in told[0].message


def test_embeddings_that_start_out_tiny_may_grow() -> None:
    monitor = monitor_of(dim=4)
    directions = torch.randn(16, 4, generator=torch.Generator().manual_seed(0))
    for step in range(200):
        size = 1e-7 if step < 10 else 30.0
        assert monitor.observe(step, loss=2.0 - step / 200, accuracy=0.5, embeddings=directions * size) == []


def test_a_single_spike_of_the_loss_is_not_a_divergence() -> None:
    monitor = monitor_of()
    for step in range(400):
        loss = 1e4 if step % 50 == 7 else 2.0 - step / 400
        assert monitor.observe(step, loss=loss, accuracy=0.5) == []


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"loss": math.nan}, "the loss became nan"),
        ({"loss": math.inf}, "the loss became inf"),
        ({"loss": 1.0, "gradients_norm": math.nan}, "the norm of the gradients became nan"),
        ({"loss": 1.0, "embeddings": torch.tensor([[math.nan, 0.0]])}, "some embeddings became NaN or infinite"),
    ],
)
def test_whatever_is_not_finite_is_fatal_and_says_where_it_began(numbers: dict[str, float], words: str) -> None:
    (trouble,) = monitor_of().observe(5, accuracy=0.5, find_origin=lambda: "the parameter a.weight", **numbers)  # type: ignore[arg-type]
    assert trouble.fatal
    assert trouble.message.startswith(f"at step 5 {words}; it began in the parameter a.weight. Training stops;")


def test_a_batch_without_labels_is_passed_over() -> None:
    monitor = monitor_of()
    for step in range(400):
        assert monitor.observe(step, loss=0.0, accuracy=math.nan, target_cosine=torch.full((4,), math.nan)) == []


def test_a_stuck_run_names_a_margin_that_cannot_be_met() -> None:
    monitor = monitor_of(num_classes=100, dim=2, scale=64.0, margin=0.5)
    told = [t for step in range(150) for t in monitor.observe(step, loss=30.0, accuracy=0.01)]
    assert [trouble.name for trouble in told] == ["margin-too-large"]
    assert told[0].message.startswith("the loss is stuck: it has stayed at 30.000 over the last")
    assert "The likely cause: the margin of 0.5 (28.6°) cannot be met" in told[0].message


def test_a_stuck_run_without_gradients_says_so() -> None:
    monitor = monitor_of()
    told = [t for step in range(150) for t in monitor.observe(step, loss=2.3, accuracy=0.1, gradients_norm=1e-12)]
    assert [trouble.name for trouble in told] == ["stuck"]
    assert "Almost no gradient arrives (its norm is 1e-12)" in told[0].message


def test_a_resumed_monitor_says_the_same_at_the_same_steps() -> None:
    def look(monitor: HealthMonitor, step: int) -> list[Trouble]:
        spread = torch.randn(16, 4, generator=torch.Generator().manual_seed(step))
        return monitor.observe(
            step,
            loss=2.3 + 0.01 * math.sin(step),
            accuracy=0.1,
            gradients_norm=1.0,
            embeddings=torch.ones(16, 4) if step > 350 else spread,
        )

    for cut in (0, 55, 101, 260, 380):
        straight, first = monitor_of(dim=4), monitor_of(dim=4)
        whole = [look(straight, step) for step in range(600)]
        halves = [look(first, step) for step in range(cut)]
        second = monitor_of(dim=4)
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        halves += [look(second, step) for step in range(cut, 600)]
        assert halves == whole
        assert second.state_dict() == straight.state_dict()
    assert [trouble.name for told in whole for trouble in told] == ["stuck", "collapsed"]


def test_the_state_of_the_monitor_stays_small_and_apart_from_the_monitor() -> None:
    monitor = monitor_of()
    for step in range(5000):
        monitor.observe(step, loss=1.0, accuracy=0.5)
    state = monitor.state_dict()
    text = json.dumps(state)
    assert len(text) < 2000
    monitor.observe(5000, loss=9.0, accuracy=0.5)
    assert json.dumps(state) == text
