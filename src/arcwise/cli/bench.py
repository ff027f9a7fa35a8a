"""arcwise bench"""

from __future__ import annotations

import json

from cyclopts import App

from arcwise.cli.bench_label_noise import label_noise
from arcwise.cli.options import OutputOptions, next_command, print_table
from arcwise.errors import ConfigError, did_you_mean

BENCHMARKS = {"mnist-epoch": "arcwise.benchmarks.mnist_epoch", "losses": "arcwise.benchmarks.losses"}

app = App(name="bench")
app.command(label_noise, name="label-noise")


@app.default
def bench(
    name: str,
    /,
    *,
    repeat: int = 3,
    output: OutputOptions = OutputOptions(),  # noqa: B008
) -> int:
    """Measure arcwise against its peers in the same run.

    For example
        arcwise bench losses

    Parameters
    ----------
    name
        mnist-epoch: an epoch of VGG8, 3-D ArcFace on MNIST, against a plain loop over the same network.
        losses: what ArcFace and its siblings do where such losses break, against the libraries that are installed.
        label-noise: what wrong labels cost each loss; a command with options of its own.
    repeat
        How often each side is timed, in turns; the median counts. For losses, how many draws; the worst counts.
    """
    if name not in BENCHMARKS:
        raise ConfigError(f"there is no benchmark {name!r}. {did_you_mean(name, [*BENCHMARKS, 'label-noise'])}")
    if repeat < 1:
        raise ConfigError(f"--repeat must be at least 1; got {repeat}.")
    reporter = output.reporter()
    with reporter.stage("starting"):
        import importlib

        module = importlib.import_module(BENCHMARKS[name])
    result = module.run(repeat=repeat, reporter=reporter)
    if output.json:
        print(json.dumps(result.to_dict()))
    else:
        print_table(result.table())
    next_command("arcwise compare mnist --losses softmax,arcface --dim 3", output)
    return 0
