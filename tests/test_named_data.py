"""The paper's datasets, on real files if this machine has them, and synthetic tasks train and predict by name."""

import json
import re
from pathlib import Path

import pytest
from PIL import Image

from command import TINY, TWO_AND_TWO, call, train

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


def shared(name):
    if not (SHARED_DATA / name).is_dir():
        pytest.skip(f"the real data is not at {SHARED_DATA / name}")
    return SHARED_DATA / name


def answers(run, *files):
    result = call("predict", run, *files, "--json")
    assert result.code == 0, result.err
    return json.loads(result.out)["predictions"]


def test_dbpedia_trains_evaluates_and_predicts_by_name(tmp_path):
    folder = shared("dbpedia_part")
    words = ["--data-dir", folder, "--max-length", "20", "--evaluate-every", "9"]
    train(tmp_path / "run", *TWO_AND_TWO, *words, data="dbpedia")
    evaluated = json.loads(call("evaluate", tmp_path / "run", "--json").out)
    assert evaluated["examples"] == 7600
    assert list(evaluated["recall"])[:2] == ["Company", "EducationalInstitution"]
    card = json.loads((tmp_path / "run" / "model.json").read_text())
    assert (len(card["format"]["alphabet"]), card["format"]["is_lowercase"]) == (70, True)
    (tmp_path / "new.txt").write_text("A village in Serbia\n")
    assert len(answers(tmp_path / "run", tmp_path / "new.txt")) == 1


def test_stanford_dogs_train_evaluate_and_predict_by_name_at_any_size(tmp_path):
    folder = shared("stanford_dogs_10")
    words = ["--data-dir", folder, "--image-size", "6", "--enlarge-to", "1100", "--evaluate-every", "9"]
    result = train(tmp_path / "run", *TWO_AND_TWO, *words, data="stanford_dogs")
    assert "approximated" in result.err
    evaluated = json.loads(call("evaluate", tmp_path / "run", "--json").out)
    assert (evaluated["examples"], len(evaluated["recall"])) == (638, 10)
    Image.new("RGBA", (90, 50)).save(tmp_path / "dog.png")
    assert len(answers(tmp_path / "run", tmp_path / "dog.png")) == 1


def test_stanford_dogs_need_a_size():
    result = call("train", "stanford_dogs", *TINY)
    assert (result.code, result.err) == (
        2,
        "auxrnn: stanford_dogs has images of many sizes; give --image-size, 40 to 128 in the paper\n",
    )


@pytest.mark.parametrize(("name", "classes"), [("adding", 19), ("recall", 8), ("needle", 10)])
def test_synthetic_tasks_train_evaluate_and_predict_by_name_at_any_length(name, classes, tmp_path):
    words = ["--length", "25", "--max-length", "20", "--read-backward", "--validation-fraction", "0.25"]
    result = train(tmp_path / "run", *TWO_AND_TWO, *words, "--label-fraction", "0.5", data=name)
    divided = r"[\d,]+ training \([\d,]+ without a label\), [\d,]+ validation and 2,000 test sequences"
    assert re.search(rf"{divided} \(validation drawn\); {classes} classes; 20 steps", result.err)
    evaluated = json.loads(call("evaluate", tmp_path / "run", "--json").out)
    assert (evaluated["examples"], len(evaluated["recall"])) == (2000, classes)
    (tmp_path / "new.txt").write_text("?aB1\nof any length, and with characters that the task does not have\n")
    assert len(answers(tmp_path / "run", tmp_path / "new.txt")) == 2


def test_a_synthetic_task_is_listed_fetched_and_checked_by_name():
    listed = json.loads(call("data", "list", "--json").out)["adding"]
    assert (listed["at_hand"], listed["download_bytes"], listed["num_classes"]) == (True, 0, 19)
    sentence = "adding needs no download\n"
    assert call("data", "fetch", "adding") == (0, sentence, "")
    checked = json.loads(call("data", "check", "adding", "--length", "50", "--json").out)
    assert checked["would_train"]
    assert (checked["examples"], checked["lengths"]["longest"]) == (22_000, 50)
    assert list(checked["classes"]["train"]) == list(checked["classes"]["test"]) == [str(sum_) for sum_ in range(19)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mnist", "pmnist"])
def test_mnist_trains_evaluates_and_predicts_by_name(name, tmp_path):
    words = ["--data-dir", shared("mnist").parent, "--image-size", "7", "--evaluate-every", "9"]
    train(tmp_path / "run", *TWO_AND_TWO, *words, data=name)
    assert json.loads(call("evaluate", tmp_path / "run", "--json").out)["examples"] == 10_000
    Image.new("L", (28, 28)).save(tmp_path / "digit.png")
    assert len(answers(tmp_path / "run", tmp_path / "digit.png")) == 1
