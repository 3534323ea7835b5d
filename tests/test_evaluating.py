"""`auxrnn evaluate` on new labeled files, what it writes, checkpoints of unfinished runs, data that has moved."""

import csv
import json
import re
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

import auxrnn
from auxrnn import runs, saved
from auxrnn.cli.evaluating import Answers, _describe, _print, _print_confusion
from auxrnn.data.formats import TextFormat
from auxrnn.training.evaluate import Evaluation, predict_split
from command import TINY, TWO_AND_TWO, call, train
from own_data import write_arrays, write_csv, write_images, write_ts
from sounds import save_wav, tone

ONE = ["--objective", "none", "--train-steps", "2"]
KINDS = {
    "table": lambda folder: write_csv(folder / "data.csv"),
    "arrays": lambda folder: write_arrays(folder / "data.npz"),
    "series": write_ts,
    "images": lambda folder: write_images(folder / "pictures"),
}


@pytest.fixture(scope="module", params=KINDS)
def trained_on(request, tmp_path_factory):
    """A run on small files of one kind, and those files."""
    folder = tmp_path_factory.mktemp(request.param)
    path = KINDS[request.param](folder)
    result = call("train", path, *few_rows(), *ONE, "--out", folder / "run")
    assert result.code == 0, result.err
    return folder / "run", path


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    path = write_csv(folder / "data.csv")
    assert call("train", path, *few_rows(), *ONE, "--out", folder / "run").code == 0
    return folder / "run", path


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "digits"
    train(folder, *ONE)
    return folder


@pytest.fixture
def unfinished(tmp_path):
    """A run with a validation split that was stopped before its last phase."""
    train(tmp_path / "run", *TWO_AND_TWO, "--validation-fraction", "0.25", "--evaluate-all", "--checkpoint-every", "1")
    (tmp_path / "run" / "model.safetensors").unlink()
    for path in (tmp_path / "run" / "checkpoints").glob("step-00000004.*"):
        path.unlink()
    return tmp_path / "run"


def few_rows():
    place = TINY.index("--train-examples")
    return [*TINY[:place], *TINY[place + 2 :]]


def evaluate(*words):
    result = call("evaluate", *words, "--json")
    assert result.code == 0, result.err
    return json.loads(result.out)


def refuse(code, *words):
    result = call(*words)
    assert result.code == code, result.err
    assert result.out == ""
    *_, sentence = result.err.splitlines()
    assert sentence.startswith("auxrnn: ")
    return sentence


def confusion_of(run, path, labels):
    answers = json.loads(call("predict", run, path, "--json").out)["predictions"]
    names = saved.load_run(run).card.class_names
    found = np.zeros((len(names), len(names)), int)
    for label, answer in zip(labels, answers, strict=True):
        found[names.index(label), names.index(answer["class"])] += 1
    return found.tolist()


def test_a_file_of_every_kind_is_evaluated_as_predict_answers(trained_on):
    run, path = trained_on
    answers = json.loads(call("predict", run, path, "--json").out)["predictions"]
    # The files of own_data alternate between the classes; a folder of pictures is read class by class.
    labels = [("cat", "dog")[row % 2] for row in range(len(answers))]
    labels = sorted(labels) if path.is_dir() else labels
    found = evaluate(run, path)
    assert found["examples"] == len(answers) > 10
    assert found["confusion"] == confusion_of(run, path, labels)


def test_a_file_of_time_series_is_read_alone(tmp_path):
    path = write_ts(tmp_path)
    assert call("train", path, *few_rows(), *ONE, "--out", tmp_path / "run").code == 0
    assert evaluate(tmp_path / "run", path)["examples"] == 24


def test_a_folder_with_splits_is_evaluated_on_the_one_that_is_asked_for(tmp_path):
    write_images(tmp_path / "new", num_rows=6, parts=("train", "test"))
    Image.new("L", (9, 7)).save(tmp_path / "new" / "train" / "cat" / "more.png")
    assert call("train", write_images(tmp_path / "old"), *few_rows(), *ONE, "--out", tmp_path / "run").code == 0
    assert evaluate(tmp_path / "run", tmp_path / "new")["examples"] == 6
    assert evaluate(tmp_path / "run", tmp_path / "new", "--split", "train")["examples"] == 7
    sentence = refuse(2, "evaluate", tmp_path / "run", tmp_path / "new", "--split", "validation")
    assert "no sequences with a label for the validation split" in sentence


def test_images_in_arrays_and_in_folders_are_read_as_the_run_reads_its_own(digits, tmp_path):
    from sklearn.datasets import load_digits

    images_NHW = np.rint(load_digits().images[:40] * (255 / 16)).astype(np.uint8)
    label_N = load_digits().target[:40]
    np.savez(tmp_path / "new.npz", x=images_NHW, y=label_N)
    for number, (image_HW, label) in enumerate(zip(images_NHW, label_N, strict=True)):
        (tmp_path / "folder" / str(label)).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image_HW).save(tmp_path / "folder" / str(label) / f"{number}.png")
    from_array, from_folder = evaluate(digits, tmp_path / "new.npz"), evaluate(digits, tmp_path / "folder")
    assert from_array["examples"] == 40
    assert from_array["confusion"] == from_folder["confusion"]
    # The network reads the 14 x 14 pixels of a canvas, however images come.
    assert from_array["loss"] == pytest.approx(from_folder["loss"], rel=1e-5)


def test_a_label_that_the_run_does_not_know_is_named_with_its_place(texts, tmp_path):
    path = write_csv(tmp_path / "new.csv", 10)
    path.write_text(path.read_text().replace(",dog", ",wolf", 1))
    sentence = refuse(1, "evaluate", texts[0], path)
    assert f"{path}, line 3 has the label 'wolf', which is no class of this run" in sentence
    assert "the classes are cat, dog" in sentence


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """A run on a table of numbers whose column of labels has a name of its own, and that table."""
    folder = tmp_path_factory.mktemp("numbers")
    rows = [f"{row % 5}.5,{row % 3},{row % 2}.25,{('up', 'down')[row % 2]}" for row in range(40)]
    path = folder / "data.csv"
    path.write_text("\n".join(["t0,t1,t2,way", *rows]) + "\n")
    assert call("train", path, "--label-column=way", *few_rows(), *ONE, "--out", folder / "run").code == 0
    return folder / "run", path


def test_the_labels_of_a_new_table_are_in_the_column_of_the_training(numbers, texts, tmp_path):
    assert evaluate(*numbers)["examples"] == 40
    (tmp_path / "new.csv").write_text("t2,way,other,t0,t1\n1,up,down,2,3\n1,up,down,2,3\n")
    assert evaluate(numbers[0], tmp_path / "new.csv")["recall"]["down"] is None
    assert evaluate(numbers[0], tmp_path / "new.csv", "--label-column", "other")["recall"]["up"] is None
    # Where no columns are, none are looked for.
    run, folder = tmp_path / "run", tmp_path / "texts" / "cat"
    path = write_csv(tmp_path / "stars.csv", header="text,stars")
    assert call("train", path, "--label-column=stars", *few_rows(), *ONE, "--out", run).code == 0
    folder.mkdir(parents=True)
    (folder / "0.txt").write_text("a b c")
    assert evaluate(run, tmp_path / "texts")["examples"] == 1


def test_the_labels_of_new_recordings_are_where_they_were_in_training(tmp_path):
    for name in ("old", "new"):
        for number in range(12):
            label = ("low", "high")[number % 2]
            save_wav(tmp_path / name / f"{label}_{number}.wav", tone(60, pitch=200.0 * (1 + number % 2)))
    words = ["--label-pattern", "{label}_*", *few_rows(), *ONE, "--out", tmp_path / "run"]
    assert call("train", tmp_path / "old", *words).code == 0
    assert evaluate(tmp_path / "run", tmp_path / "new")["examples"] == 12
    for path in list((tmp_path / "new").iterdir()):
        path.rename(path.with_name("-".join(reversed(path.stem.split("_"))) + ".wav"))
    assert "does not match --label-pattern" in refuse(1, "evaluate", tmp_path / "run", tmp_path / "new")
    found = evaluate(tmp_path / "run", tmp_path / "new", "--label-pattern", "*-{label}")
    assert found["examples"] == 12


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("t0,t1,t2,way\n1,hm,2,up\n", "holds words in 't1' (it has 't0', 't1', 't2', 'way'); write numbers there"),
        ("a,b,way\n1,2,up\n", "has no column 't0', which the training data has; give it the same columns"),
    ],
)
@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_a_new_table_that_does_not_fit_is_refused_without_flags_of_the_training(
    numbers, tmp_path, command, content, sentence
):
    (tmp_path / "new.csv").write_text(content)
    found = refuse(2 if "words in" in sentence else 1, command, numbers[0], tmp_path / "new.csv")
    assert sentence in found
    assert "--" not in found


def test_a_run_on_texts_has_no_use_for_numbers(texts, tmp_path):
    (tmp_path / "new.csv").write_text("a,b,label\nsome words,more words,cat\n")
    for command in ("evaluate", "predict"):
        found = refuse(2, command, texts[0], tmp_path / "new.csv")
        assert "give --text-column" in found
        assert found.endswith(", by name or by number from 1")


@pytest.mark.parametrize("name", ["new.npz", "new.npy", "new.txt", "new.csv", "folder"])
def test_what_has_no_labels_is_refused_in_one_sentence(name, texts, digits, tmp_path):
    x_NT = np.zeros((3, 196), np.uint8)
    np.savez(tmp_path / "new.npz", x=x_NT)
    np.save(tmp_path / "new.npy", x_NT)
    (tmp_path / "new.txt").write_text("only text\n")
    (tmp_path / "new.csv").write_text("text,label\nsome text,\n")
    (tmp_path / "folder").mkdir()
    Image.new("L", (8, 8)).save(tmp_path / "folder" / "0.png")
    run = texts[0] if name in ("new.txt", "new.csv") else digits
    sentence = refuse(2, "evaluate", run, tmp_path / name)
    assert name in sentence
    assert "label" in sentence or "sub-folder" in sentence


def test_rows_without_a_label_are_left_out_and_said(texts, tmp_path):
    result = call("evaluate", texts[0], write_csv(tmp_path / "new.csv", 10, unlabeled_every=5), "--json")
    assert json.loads(result.out)["examples"] == 8
    assert "new.csv, line 2 has no label" in result.err


def test_columns_of_a_new_table_can_be_named(texts, tmp_path):
    path = write_csv(tmp_path / "new.csv", header="words,animal")
    assert "--text-column" in refuse(2, "evaluate", texts[0], path)
    named = evaluate(texts[0], path, "--text-column", "words", "--label-column", "animal")
    assert named["confusion"] == evaluate(texts[0], texts[1])["confusion"]


def test_options_without_effect_are_refused(texts, tmp_path):
    run, path = texts
    assert "--label-column has no effect" in refuse(2, "evaluate", run, "--label-column", "label")
    assert "--data has no effect on a FILE" in refuse(2, "evaluate", run, path, "--data", path)
    assert "--worst is -1" in refuse(2, "evaluate", run, "--worst", "-1")
    assert "x.jpg; give the name of a .png file" in refuse(2, "evaluate", run, "--picture", "x.jpg")
    assert "which is a folder" in refuse(2, "evaluate", run, "--save", tmp_path)
    assert "unknown option: --splits. Did you mean --split?" in refuse(2, "evaluate", run, "--splits", "test")


def test_predictions_are_saved_with_place_truth_answer_and_probabilities(texts, tmp_path):
    run, path = texts
    evaluated = evaluate(run, path, "--save", tmp_path / "deep" / "out.csv")
    with (tmp_path / "deep" / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    predicted = json.loads(call("predict", run, path, "--json").out)["predictions"]
    assert [row["place"] for row in rows] == [row["file"] for row in predicted]
    assert [row["answer"] for row in rows] == [row["class"] for row in predicted]
    for row, other in zip(rows, predicted, strict=True):
        assert float(row["probability of cat"]) == pytest.approx(other["probabilities"]["cat"], rel=1e-4)
    right = sum(row["answer"] == row["true class"] for row in rows)
    assert evaluated["accuracy"] == pytest.approx(100 * right / len(rows))
    assert not list((tmp_path / "deep").glob(".*")), "nothing is left beside it"


def test_the_worst_answers_are_wrong_and_the_surest_come_first(digits):
    worst = evaluate(digits, "--worst", "7")["worst"]
    assert len(worst) == 7
    assert all(row["true"] != row["answer"] for row in worst)
    assert [row["probability"] for row in worst] == sorted((row["probability"] for row in worst), reverse=True)
    split, card = runs.load_split(digits, "test"), saved.load_run(digits).card
    for row in worst:
        number = int(re.fullmatch(r"test\[(\d+)\]", row["place"])[1])
        assert card.class_names[split.label_N[number]] == row["true"]
    assert evaluate(digits, "--worst", "0")["worst"] == []


def test_the_worst_texts_show_how_they_begin(texts, tmp_path):
    path = write_csv(tmp_path / "new.csv", 40)
    # With the labels exchanged, whatever is right becomes wrong.
    content = path.read_text().replace(",cat", ",DOG").replace(",dog", ",cat").replace(",DOG", ",dog")
    path.write_text(content)
    lines = path.read_text().splitlines()
    worst = evaluate(texts[0], path, "--worst", "40")["worst"]
    assert worst
    for row in worst:
        number = int(row["place"].rpartition(" ")[2])
        assert lines[number - 1].startswith(f'"{row["text"]}')


def test_the_calibration_error_is_shown_with_and_without_the_temperature_of_a_run(digits, capsys):
    trained = saved.load_run(digits)
    logits_NC = torch.nn.functional.one_hot(torch.arange(20) % 10, 10) * 3.0
    label_N = torch.cat([torch.arange(10), torch.zeros(10, dtype=torch.long)])
    answers = Answers([""] * 20, [""] * 20, label_N, logits_NC)
    evaluation = Evaluation(1.0, torch.eye(10, dtype=torch.long))
    for temperature, parts in ((1.0, 1), (2.0, 2)):
        found = _describe(trained._replace(temperature=temperature), answers, evaluation, 0)
        _print(found, trained.card.class_names)
        shown = re.findall(r"([\d.]+) %", capsys.readouterr().out.partition("calibration error ")[2].split("\n")[0])
        probability = torch.softmax(logits_NC[0].double() * torch.tensor([[1.0], [temperature]]), dim=1).max(dim=1)[0]
        expected = [f"{100 * abs(float(one) - 0.55):.2f}" for one in probability]
        assert shown == expected[:parts]


@pytest.mark.parametrize("num_classes", [2, 7, 10, 12, 37])
def test_the_confusion_table_is_readable_at_80_columns(num_classes, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"a rather long name of class number {number}" for number in range(num_classes)]
    confusion = (torch.eye(num_classes, dtype=torch.long) * 123).tolist()
    _print_confusion(names, confusion, [100.0] * num_classes)
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert "true class" in text
    assert text.count("123") >= num_classes
    assert len({line[:19] for line in lines if line.startswith(" a ")}) == num_classes, "names stay different"
    assert ("columns: answers" in text) == (num_classes <= 12)


def test_classes_are_named_without_their_numbers(texts):
    text = call("evaluate", *texts, "--worst", "0").out
    assert "rows: true classes; columns: answers" in text
    assert re.search(r"^ true class +cat +dog +recall %", text, re.MULTILINE)
    assert re.search(r"^ cat +\d+ +\d+ +[\d.]+", text, re.MULTILINE)


def test_a_picture_is_written(texts, tmp_path):
    evaluate(*texts, "--picture", tmp_path / "confusion.png")
    with Image.open(tmp_path / "confusion.png") as image:
        assert image.format == "PNG"
        assert image.width > image.height


def test_data_that_has_moved_is_said_and_named_by_a_flag(tmp_path):
    path = write_csv(tmp_path / "data.csv")
    assert call("train", path, *few_rows(), *ONE, "--out", tmp_path / "run").code == 0
    before = evaluate(tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    moved = path.rename(tmp_path / "elsewhere" / "data.csv")
    (tmp_path / "run" / "model.safetensors").rename(tmp_path / "kept")
    gone = f"the data of this run is gone: {path}; let --data name its new place"
    assert gone in refuse(1, "resume", tmp_path / "run")
    assert call("resume", tmp_path / "run", "--data", moved).code == 0
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == (tmp_path / "kept").read_bytes()
    assert gone in refuse(1, "evaluate", tmp_path / "run")
    assert evaluate(tmp_path / "run", "--data", moved) == before
    other = write_csv(tmp_path / "other.csv", 40)
    # The run is finished, so resuming it only shows its result.
    assert call("resume", tmp_path / "run", "--data", moved).code == 0
    for command in ("evaluate", "resume"):
        assert "nowhere does not exist" in refuse(2, command, tmp_path / "run", "--data", "nowhere")
        found = refuse(1, command, tmp_path / "run", "--data", other)
        assert "is not the data that this run was trained on" in found


def test_other_files_of_a_run_that_are_gone_are_named(tmp_path):
    path, more = write_csv(tmp_path / "data.csv"), write_csv(tmp_path / "more.csv", 20)
    assert call("train", path, "--test-data", more, *few_rows(), *ONE, "--out", tmp_path / "run").code == 0
    more.unlink()
    assert f"the --test-data of this run is gone: {more}" in refuse(1, "evaluate", tmp_path / "run")


def test_a_dataset_by_name_has_its_own_flag(digits):
    assert "digits is looked for in --data-dir" in refuse(2, "evaluate", digits, "--data", digits)


@pytest.mark.parametrize("command", ["evaluate", "show", "export", "compare"])
def test_every_command_says_which_commands_use_an_unfinished_run(command, unfinished, digits, tmp_path):
    more = {"export": [tmp_path / "x.onnx"], "compare": [digits]}.get(command, [])
    found = refuse(1, command, unfinished, *more)
    assert found.endswith("continues it (evaluate and predict use it as it is with --checkpoint latest)")


def test_an_unfinished_run_is_used_from_its_newest_checkpoint(unfinished, tmp_path):
    assert "--checkpoint latest" in refuse(1, "evaluate", unfinished)
    result = call("evaluate", unfinished, "--checkpoint", "latest", "--weights", "final", "--json")
    events = [json.loads(line) for line in (unfinished / "metrics.jsonl").read_text().splitlines()]
    (recorded,) = [one for one in events if one["event"] == "evaluation" and one["total_step"] == 3]
    assert json.loads(result.out)["accuracy"] == pytest.approx(recorded["test_accuracy"])
    assert json.loads(result.out)["weights"] == "final"
    np.save(tmp_path / "new.npy", np.zeros((1, 196), np.uint8))
    assert call("predict", unfinished, tmp_path / "new.npy", "--checkpoint", "latest").code == 0


def test_the_best_weights_of_a_checkpoint_are_those_of_the_best_evaluation(unfinished):
    found = evaluate(unfinished, "--checkpoint", "latest", "--split", "validation")
    events = [json.loads(line) for line in (unfinished / "metrics.jsonl").read_text().splitlines()]
    scored = [one["validation_accuracy"] for one in events if "validation_accuracy" in one and one["total_step"] < 4]
    assert (found["weights"], found["accuracy"]) == ("best", pytest.approx(max(scored)))


def test_the_newest_checkpoint_of_a_finished_run_holds_its_weights(digits):
    whole, newest = auxrnn.load_run(digits), saved.load_run(digits, checkpoint="latest")
    for name, value in whole.network.state_dict().items():
        assert torch.equal(value, newest.network.state_dict()[name])
    assert "has no best weights" in refuse(2, "evaluate", digits, "--checkpoint", "latest", "--weights", "best")


def test_a_run_without_a_checkpoint_says_so(digits, tmp_path):
    folder = shutil.copytree(digits, tmp_path / "run")
    shutil.rmtree(folder / "checkpoints")
    assert "has no whole checkpoint" in refuse(1, "evaluate", folder, "--checkpoint", "latest")


def test_texts_in_bytes_begin_as_they_are_read(tmp_path):
    path = write_csv(tmp_path / "data.csv")
    assert call("train", path, "--tokens", "bytes", *few_rows(), *ONE, "--out", tmp_path / "run").code == 0
    assert isinstance(saved.load_run(tmp_path / "run").card.format, TextFormat)
    result = evaluate(tmp_path / "run", path, "--worst", "1")
    assert set(result["worst"][0]["text"]) <= set("abcxyz .")


def test_answers_come_in_the_order_of_the_sequences_whatever_their_lengths(texts):
    trained, split = saved.load_run(texts[0]), runs.load_split(texts[0], "train")
    assert len(set(split.length_N.tolist())) > 5
    together = predict_split(trained.network, split, batch_size=4)
    alone = [predict_split(trained.network, split.select(np.array([row])), batch_size=1) for row in range(10)]
    torch.testing.assert_close(together[:10], torch.cat(alone), rtol=1e-4, atol=1e-6)
