"""Every form of a user's own data trains, evaluates, predicts and is checked, from the command line."""

import io
import json
import sys
import tarfile
import zipfile

import numpy as np
import pytest

import own_numbers
from auxrnn import runs
from command import call
from own_data import CLASSES, as_bytes, write_arrays, write_audio, write_csv, write_images, write_jsonl, write_ts
from sounds import save_wav, tone

TINY = [
    "--hidden-size", "4", "--embedding-size", "4", "--head-size", "8", "--batch-size", "8", "--segment-length", "6",
    "--auxiliary-window", "5", "--supervised-window", "5", "--pretrain-steps", "1", "--train-steps", "1",
    "--threads", "1",
]  # fmt: skip


def train(folder, data, *words):
    result = call("train", data, *TINY, *words, "--out", folder)
    assert result.code == 0, result.err
    return result


def predictions(run, *words):
    result = call("predict", run, *words, "--json")
    assert result.code == 0, result.err
    return json.loads(result.out)


def card_of(run):
    return json.loads((run / "model.json").read_text())


def make_images(folder):
    return [write_images(folder / "photos")], [folder / "photos" / "cat" / "0.png", folder / "photos"]


def make_images_with_parts(folder):
    photos = write_images(folder / "photos", parts=("train", "val", "test"), mode="RGB")
    return [photos, "--image-size", "5"], [photos / "test"]


def make_csv(folder):
    return [write_csv(folder / "reviews.csv")], [folder / "reviews.csv"]


def make_csv_by_byte(folder):
    return [write_csv(folder / "reviews.csv"), "--tokens", "bytes"], [folder / "reviews.csv"]


def make_jsonl(folder):
    path = write_jsonl(folder / "reviews.jsonl")
    return [path, "--label-column", "stars"], [path]


def make_npz(folder):
    return [write_arrays(folder / "data.npz")], [folder / "data.npz"]


def make_npy(folder):
    np.save(folder / "x.npy", np.random.default_rng(0).standard_normal((30, 8)))
    np.save(folder / "y.npy", np.arange(30) % 3)
    return [folder / "x.npy"], [folder / "x.npy"]


def make_ts(folder):
    return [write_ts(folder)], [folder / "Slopes_TEST.ts"]


def make_audio(folder):
    sounds = write_audio(folder / "sounds")
    return [sounds], [sounds / "cat" / "cat_0.wav", sounds]


def make_named_audio(folder):
    sounds = write_audio(folder / "sounds", rate=1600, channels=2)
    return [sounds, "--label-pattern", "{label}_*", "--sample-rate", "400"], [sounds / "dog"]


def make_audio_table(folder):
    sounds = write_audio(folder / "sounds")
    rows = [f"sounds/{path.relative_to(sounds)},{path.parent.name}" for path in sorted(sounds.rglob("*.wav"))]
    for name in ("train.csv", "test.csv"):
        (folder / name).write_text("\n".join(["file,label", *rows]) + "\n")
    return [folder / "train.csv", "--test-data", folder / "test.csv"], [folder / "test.csv"]


def make_zip(folder):
    photos = write_images(folder / "photos")
    with zipfile.ZipFile(folder / "photos.zip", "w") as archive:
        for path in sorted(photos.rglob("*.png")):
            archive.write(path, path.relative_to(folder))
    return [folder / "photos.zip"], [photos]


def make_tar(folder):
    write_csv(folder / "train.csv")
    write_csv(folder / "test.csv", 20)
    with tarfile.open(folder / "texts.tar.gz", "w:gz") as archive:
        for name in ("train.csv", "test.csv"):
            archive.add(folder / name, f"texts/{name}")
    return [folder / "texts.tar.gz"], [folder / "test.csv"]


# Each writes files; gives the words that train on them, and what to predict.
KINDS = {
    "images": make_images, "images with parts": make_images_with_parts, "csv": make_csv,
    "csv by byte": make_csv_by_byte, "jsonl": make_jsonl, "npz": make_npz, "npy": make_npy, "ts": make_ts,
    "zip": make_zip, "tar": make_tar, "audio": make_audio, "named audio": make_named_audio,
    "audio table": make_audio_table,
} | own_numbers.MAKERS  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_checked_trained_evaluated_resumed_and_predicted(kind, tmp_path):
    words, new = KINDS[kind](tmp_path)
    checked = call("data", "check", *words)
    assert checked.code == 0, checked.out + checked.err
    assert "training would start\n" in checked.out
    run = tmp_path / "run"
    result = train(run, *words)
    assert " test sequences" in result.err
    evaluated = json.loads(call("evaluate", run, "--json").out)
    assert evaluated["examples"] > 0
    names = list(evaluated["recall"])
    assert names == card_of(run)["class_names"]
    answers = predictions(run, *new)["predictions"]
    assert len(answers) > 0
    for answer in answers:
        assert list(answer["probabilities"]) == names
        assert sum(answer["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    (run / "model.safetensors").unlink()
    assert call("resume", run).code == 0


@pytest.mark.parametrize(
    "kind", ["csv", "ts", "audio", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("images", "npz"))]
)
def test_data_show_draws_a_picture_of_every_kind(kind, tmp_path):
    words, _new = KINDS[kind](tmp_path)
    result = call("data", "show", *words, "--out", tmp_path / "shown.png")
    assert result.code == 0, result.err
    assert (tmp_path / "shown.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "kind", ["csv", "images", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("npz", "ts"))]
)
def test_prediction_equals_evaluation_on_the_same_examples(kind, tmp_path):
    words, new = KINDS[kind](tmp_path)
    run = tmp_path / "run"
    train(run, *words)
    split = runs.load_split(run, "test")
    names = card_of(run)["class_names"]
    answers = predictions(run, new[-1])["predictions"]
    # The test series have a file of their own; other files hold all examples, and the test split says which.
    chosen = answers if kind == "ts" else [answers[row] for row in split.row_N]
    confusion = np.zeros((len(names), len(names)), dtype=int)
    for label, answer in zip(split.label_N, chosen, strict=True):
        confusion[label, names.index(answer["class"])] += 1
    assert confusion.tolist() == json.loads(call("evaluate", run, "--json").out)["confusion"]


def test_recordings_come_from_standard_input_and_at_any_rate(tmp_path, monkeypatch):
    train(tmp_path / "run", write_audio(tmp_path / "sounds"))
    assert card_of(tmp_path / "run")["format"]["sample_rate"] == 800
    slow, fast = (
        save_wav(tmp_path / f"{rate}.wav", tone(rate, rate=rate, pitch=50), rate=rate) for rate in (800, 3200)
    )
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(fast.read_bytes())))
    answers = [predictions(tmp_path / "run", path)["predictions"][0] for path in (slow, fast, "-")]
    for answer in answers:
        assert answer["probabilities"] == pytest.approx(answers[0]["probabilities"], abs=0.002)
    assert answers[1]["probabilities"] == answers[2]["probabilities"]
    (tmp_path / "cut.wav").write_bytes(fast.read_bytes()[:100])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "cut.wav").read_bytes())))
    result = call("predict", tmp_path / "run", "-")
    assert result.code == 1
    assert result.err.startswith("auxrnn: standard input is cut off (")


def test_neighboring_samples_of_recordings_are_joined(tmp_path):
    for number in range(12):
        label, length = ("low", 90) if number % 2 else ("high", 110)
        save_wav(tmp_path / "digits" / f"{label}_{number}.wav", tone(length, pitch=500 if label == "low" else 2000))
    train(tmp_path / "run", tmp_path / "digits", "--label-pattern", "{label}_*", "--steps-per-input", "20")
    card = card_of(tmp_path / "run")
    assert (card["num_steps"], card["class_names"]) == (6, ["high", "low"])
    assert len(predictions(tmp_path / "run", tmp_path / "digits")["predictions"]) == 12


def test_unlabeled_recordings_help_in_pretraining_and_are_resampled(tmp_path):
    sounds = write_audio(tmp_path / "sounds")
    save_wav(tmp_path / "more" / "a.wav", tone(rate=1600), rate=1600)
    said = train(tmp_path / "run", sounds, "--unlabeled", tmp_path / "more").err
    assert "11 training (1 without a label) and 2 test sequences" in said


def test_a_network_for_texts_reads_lines_from_standard_input_and_counts_what_it_does_not_know(tmp_path, monkeypatch):
    run = tmp_path / "run"
    train(run, write_csv(tmp_path / "reviews.csv"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("abc\n\nxyz\N{SNOWMAN}\N{SNOWMAN}!\n".encode())))
    result = call("predict", run, "-")
    assert [line.split("\t")[0] for line in result.out.splitlines()] == ["-, line 1", "-, line 3"]
    assert "3 characters are not in the network's alphabet: '\N{SNOWMAN}' (2), '!' (1)" in result.err


def test_a_network_for_texts_streams_characters_and_ends_as_it_predicts(tmp_path, monkeypatch):
    run = tmp_path / "run"
    train(run, write_csv(tmp_path / "reviews.csv"))
    (tmp_path / "new.txt").write_text("abca.\nxyz\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "new.txt").read_bytes())))
    steps = [json.loads(line) for line in call("predict", run, "-", "--stream", "--json").out.splitlines()]
    assert [step["step"] for step in steps] == [1, 2, 3, 4, 5, 1, 2, 3]
    for step, answer in zip((steps[4], steps[7]), predictions(run, tmp_path / "new.txt")["predictions"], strict=True):
        assert step["probabilities"] == pytest.approx(answer["probabilities"], abs=1e-5)


def test_a_network_for_series_streams_raw_values_and_ends_as_it_predicts(tmp_path, monkeypatch):
    run = tmp_path / "run"
    train(run, write_arrays(tmp_path / "data.npz"))
    x_NTD = np.array([[[1000.0, 0.5], [1001.5, -0.5], [1003.0, 0.25]]])
    np.save(tmp_path / "new.npy", x_NTD)
    text = "\n".join(" ".join(map(str, step)) for step in x_NTD[0]).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    last = json.loads(call("predict", run, "-", "--stream", "--json").out.splitlines()[-1])
    (answer,) = predictions(run, tmp_path / "new.npy")["predictions"]
    assert last["probabilities"] == pytest.approx(answer["probabilities"], abs=1e-5)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(as_bytes(x_NTD))))
    (piped,) = predictions(run, "-")["predictions"]
    assert piped["probabilities"] == answer["probabilities"]


def test_scaling_comes_from_the_training_examples_alone_and_travels_with_the_model(tmp_path):
    run = tmp_path / "run"
    train(run, write_arrays(tmp_path / "data.npz"))
    splits = json.loads((run / "splits.json").read_text())
    with np.load(tmp_path / "data.npz") as data:
        lengths = data["lengths"]
        kept = np.concatenate([data["x"][row, : lengths[row]] for row in splits["train"]])
    form = card_of(run)["format"]
    np.testing.assert_allclose(form["mean"], kept.astype(np.float32).mean(axis=0, dtype=np.float64), rtol=1e-9)
    np.testing.assert_allclose(form["deviation"], kept.astype(np.float32).std(axis=0, dtype=np.float64), rtol=1e-9)
    (tmp_path / "data.npz").unlink()
    np.save(tmp_path / "new.npy", np.zeros((2, 3, 2)))
    assert len(predictions(run, tmp_path / "new.npy")["predictions"]) == 2


def test_rows_without_a_label_pretrain_and_are_left_out_afterwards(tmp_path):
    path = write_csv(tmp_path / "reviews.csv", 60, unlabeled_every=3)
    (tmp_path / "more.txt").write_text("only text\n" * 7)
    result = train(tmp_path / "run", path, "--unlabeled", tmp_path / "more.txt", "--pretrain-epochs", "1",
                   "--train-epochs", "1", "--pretrain-steps", "None", "--train-steps", "None",
                   "--validation-fraction", "0")  # fmt: skip
    assert "59 training (27 without a label) and 8 test sequences (test drawn)" in result.err
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    last = {event["phase"]: event["step"] for event in map(json.loads, lines)}
    assert last == {"pretrain": 8, "joint": 4}


def test_a_fraction_of_labels_leaves_the_rest_for_pretraining(tmp_path):
    result = train(tmp_path / "run", write_csv(tmp_path / "reviews.csv"), "--label-fraction", "0.25")
    assert "48 training (36 without a label) and 12 test sequences (test drawn)" in result.err


def test_a_test_file_of_its_own_is_used_and_a_second_one_refused(tmp_path):
    path, test = write_csv(tmp_path / "reviews.csv"), write_csv(tmp_path / "held_out.csv", 10)
    result = train(tmp_path / "run", path, "--test-data", test, "--validation-fraction", "0")
    assert "60 training and 10 test sequences; 2 classes" in result.err
    series = write_ts(tmp_path)
    refused = call("train", series, *TINY, "--test-data", series, "--out", tmp_path / "no")
    assert (refused.code, refused.err.count("\n")) == (2, refused.err.count("\n"))
    assert "has a test split of its own; remove --test-data" in refused.err


def test_data_that_changed_since_a_run_began_is_not_mixed_with_it(tmp_path):
    path = write_csv(tmp_path / "reviews.csv")
    train(tmp_path / "run", path)
    write_csv(path, 40)
    result = call("evaluate", tmp_path / "run")
    assert result.code == 1
    assert result.err.endswith("reviews.csv has changed since this run began; put it back as it was, or train again\n")


def test_a_run_that_starts_from_another_reads_with_its_alphabet(tmp_path):
    train(tmp_path / "first", write_csv(tmp_path / "reviews.csv"))
    (tmp_path / "other.csv").write_text("text,label\n" + "aqq,cat\nbww,dog\n" * 10)
    train(tmp_path / "second", tmp_path / "other.csv", "--init-from", tmp_path / "first")
    alphabets = [card_of(tmp_path / name)["format"]["alphabet"] for name in ("first", "second")]
    assert alphabets[0] == alphabets[1]
    assert "q" not in alphabets[1]
    in_bytes = call("train", tmp_path / "other.csv", *TINY, "--tokens", "bytes", "--init-from", tmp_path / "first")
    assert (in_bytes.code, "the run of --init-from reads characters" in in_bytes.err) == (2, True)
    refused = call(
        "train", write_arrays(tmp_path / "data.npz"), *TINY, "--init-from", tmp_path / "first", "--out", tmp_path / "no"
    )
    assert refused.code == 2
    assert "is a run on texts, and these are series" in refused.err


def test_texts_read_backward_are_cut_first(tmp_path):
    run = tmp_path / "run"
    train(run, write_csv(tmp_path / "reviews.csv"), "--read-backward", "--max-length", "4")
    assert card_of(run)["num_steps"] == 4
    (tmp_path / "new.txt").write_text("abcax\nabcay\n")
    first, second = predictions(run, tmp_path / "new.txt")["predictions"]
    assert first["probabilities"] == second["probabilities"]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--image-size", "9"], "--image-size has no effect on a table of texts"),
        (["--enlarge-to", "900"], "--enlarge-to has no effect on a table of texts"),
        (["--text-column", "txt"], "'txt'"),
        (["--unlabeled", "nowhere.txt"], "nowhere.txt does not exist"),
        (["--label-fraction", "0"], "--label-fraction is 0.0; it must be above 0"),
        (["--max-length", "0"], "--max-length is 0; it must be at least 1"),
    ],
)
def test_a_wrong_flag_for_a_table_gets_one_sentence(tmp_path, words, part):
    result = call("train", write_csv(tmp_path / "reviews.csv"), *TINY, *words, "--out", tmp_path / "run")
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert part in result.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("rows", "part"),
    [
        ("abc,cat\nabd,cat\n" * 5, "has the single class 'cat' in its training examples"),
        ("abc,cat\nxyz,dog\nbad\n", "line 4 has 1 column"),
        ("abc,\nabd,\n", "has no labels in its training examples"),
        ('abc,cat\n"xyz,dog\n', "line 3"),
    ],
)
def test_wrong_data_is_refused_in_one_sentence_and_listed_by_check(tmp_path, rows, part):
    path = tmp_path / "reviews.csv"
    path.write_text("text,label\n" + rows)
    words = ["--text-column", "text", "--label-column", "label"]
    result = call("train", path, *TINY, *words, "--out", tmp_path / "run")
    assert result.code == 1
    assert part in result.err
    assert "; " in result.err.splitlines()[-1]
    assert not (tmp_path / "run").exists()
    checked = call("data", "check", path, *words)
    assert checked.code == 1
    assert part in checked.out
    assert "training would fail: " in checked.out


@pytest.mark.parametrize(
    ("files", "sentences"),
    [
        ({"my.csv": "a,b,c\n1,2,3\n"}, ["my.csv does not say which column is the label (it has 'a', 'b', 'c')"]),
        ({"my.csv": "text,plot\nab,cd\n"}, ["my.csv does not say which column is the text and which the label"]),
        (
            {"train.csv": "a,b,label\n1,2,up\n3,4,down\n", "test.csv": "a,b,c\n1,2,3\n"},
            ["test.csv does not say which column is the label"],
        ),
    ],
)
def test_a_column_of_labels_that_is_missing_is_listed_once(tmp_path, files, sentences):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    path = tmp_path / "my.csv" if "my.csv" in files else tmp_path
    checked = call("data", "check", path)
    assert (checked.code, checked.err) == (1, "")
    listed = [line for line in checked.out.splitlines() if line.startswith("error: ")]
    assert len(listed) == len(sentences)
    assert all(sentence in line for sentence, line in zip(sentences, listed, strict=True))
    assert "training would fail: 1 problem\n" in checked.out
    assert json.loads(call("data", "check", path, "--json").out)["num_refused"] == 1


def test_a_label_that_only_the_test_split_has_is_named_with_its_line(tmp_path):
    write_csv(tmp_path / "train.csv")
    (tmp_path / "test.csv").write_text("text,label\nabc,cat\nabc,horse\n")
    result = call("train", tmp_path, *TINY, "--out", tmp_path / "run")
    assert result.code == 1
    assert "test.csv, line 3 has the label 'horse', which no training example has" in result.err


def test_a_broken_picture_is_left_out_and_named_at_every_start(tmp_path):
    photos = write_images(tmp_path / "photos")
    (photos / "cat" / "broken.png").write_bytes(b"\x89PNG nothing more")
    for name in ("first", "second"):
        assert "1 skipped: " in (said := train(tmp_path / name, photos).err)
        assert "broken.png cannot be read as an image" in said


def test_class_names_travel_with_the_model(tmp_path):
    train(tmp_path / "run", write_csv(tmp_path / "reviews.csv"))
    assert card_of(tmp_path / "run")["class_names"] == list(CLASSES)


def test_names_of_classes_are_shown_as_they_are_and_never_obeyed(tmp_path):
    names = ["[/red]", "[bold]a", "tab\there\nline", "\x1b[31mred"]
    label_N = np.arange(40) % 4
    x_NT = np.random.default_rng(0).random((40, 12)) + label_N[:, None]
    path, folder = tmp_path / "names.npz", tmp_path / "run"
    np.savez(path, x=x_NT, y=np.array(names)[label_N])
    checked = call("data", "check", path)
    assert checked.code == 0
    trained = call("train", path, "--train-steps", "2", "--objective", "none", "--hidden-size", "4", "--out", folder)
    assert trained.code == 0, trained.err
    evaluated = call("evaluate", folder)
    assert evaluated.code == 0
    for shown in (checked.out, evaluated.out):
        assert {"[/red]", "[bold]a", "tab?here?line", "?[31mred"} <= set(shown.split())
    np.save(tmp_path / "new.npy", x_NT)
    predicted = call("predict", folder, tmp_path / "new.npy").out.splitlines()
    assert len(predicted) == 40
    assert all(len(line.split("\t")) == 3 for line in predicted)
