from __future__ import annotations

from arcwise.progress import Stage
from arcwise.training.jobs_progress import Board, StepReporter


def test_the_board_adds_up_the_steps_of_all_runs() -> None:
    stage = Stage("training", 30)
    board = Board(stage, "runs", 4, done=1)
    assert stage.text == "1/4 runs"
    board.began("a")
    board.began("b")
    board.moved("a", 0)
    board.moved("a", 4)
    board.moved("b", 0)
    board.moved("b", 3)
    assert stage.done == 7
    assert "steps/s" in stage.text
    assert stage.text.endswith("a, b")
    board.ended("a", 10)
    assert stage.done == 13
    assert stage.text.startswith("2/4 runs")
    assert stage.text.endswith("b")


def test_steps_taken_before_a_run_was_stopped_do_not_count_as_speed() -> None:
    stage = Stage("training", 1000)
    board = Board(stage, "runs", 1)
    board.began("a")
    board.moved("a", 900)
    assert stage.done == 900
    assert "steps/s" not in stage.text


def test_many_names_are_cut_short() -> None:
    stage = Stage("training", 10)
    board = Board(stage, "trials", 9)
    for name in "abcde":
        board.began(name)
    board.remark = "best 98 %"
    board.moved("a", 1)
    assert stage.text.endswith("best 98 % · a, b, c and 2 more")


def test_only_the_steps_of_training_are_passed_on() -> None:
    moved: list[int] = []
    warned: list[str] = []
    reporter = StepReporter(moved.append, warned.append)
    with reporter.stage("training arcface on digits", total=10) as stage:
        stage.update("text", done=1)
        stage.update("text", done=2)
        stage.update("text")
    with reporter.stage("measuring arcface", total=10) as stage:
        stage.update(done=9)
        stage.advance()
    reporter.say("nothing")
    reporter.warn("careful")
    assert (moved, warned) == ([1, 2], ["careful"])
