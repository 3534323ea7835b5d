"""Recordings as data: labels from folders, names and tables; one rate and one number of channels; one sentence else."""

import time

import numpy as np
import pytest

from auxrnn.config import DataConfig
from auxrnn.data.datasets import load
from auxrnn.data.examples import Problems
from auxrnn.data.formats import SeriesFormat, TextFormat, adopt
from auxrnn.data.sources import find_source, find_sources
from auxrnn.errors import RunError, UsageError
from sounds import save_wav, tone


def save(folder, *names, **options):
    for name in names:
        save_wav(folder / name, **options)
    return folder


def find(path, *, has_labels=True, **asked):
    return find_source(path, DataConfig(data=str(path), **asked), has_labels=has_labels)


def read(path, *, problems=None, like=None, **options):
    return find(path, **options).read(problems or Problems(), like)


def found_in(path, **options):
    folder = path if path.is_dir() else path.parent
    return [(e.place.removeprefix(f"{folder}/"), e.label, e.part) for e in read(path, **options).examples]


def write_table(path, *rows, header="file,label"):
    path.write_text("\n".join((header, *rows)) + "\n")
    return path


def test_sub_folders_are_classes_however_deep_recordings_lie(tmp_path):
    save(tmp_path, "cat/b.wav", "cat/far/a.WAV", "dog/a.wav", "dog/.hidden.wav")
    assert found_in(tmp_path) == [
        ("cat/b.wav", "cat", None),
        ("cat/far/a.WAV", "cat", None),
        ("dog/a.wav", "dog", None),
    ]
    understood = read(tmp_path)
    assert understood.format == SeriesFormat(1, sample_rate=8000)
    expected = "folder of audio, 3 recordings, 2 classes, 8,000 samples a second, 1 channel"
    assert understood.description == expected
    (first, *_others) = understood.examples
    assert np.abs(first.value_T - tone()).max() < 1e-4
    assert understood.num_bytes >= 3 * 4 * 400


def test_folders_of_parts_hold_the_class_folders_and_training_comes_first(tmp_path):
    save(tmp_path, "test/cat/a.wav", "train/cat/b.wav", "val/dog/c.wav", "unlabeled/d.wav")
    assert found_in(tmp_path) == [
        ("train/cat/b.wav", "cat", "train"), ("val/dog/c.wav", "dog", "validation"), ("test/cat/a.wav", "cat", "test"),
        ("unlabeled/d.wav", None, "unlabeled"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "label"),
    [
        ("{label}_*", "7"), ("{label}_{speaker}_{index}", "7"), ("*_{label}", "0"), ("{a}_{label}_{b}", "theo"),
        ("?_{label}_?", "theo"), ("{label}", "7_theo_0"), ("{label}[*", None), ("*.{label}", None), ("{label}_", None),
    ],
)  # fmt: skip
def test_a_pattern_says_where_the_label_stands_in_a_name(tmp_path, assert_one_sentence, pattern, label):
    save(tmp_path, "7_theo_0.wav")
    if label is not None:
        assert found_in(tmp_path, label_pattern=pattern) == [("7_theo_0.wav", label, None)]
        return
    with pytest.raises(RunError) as error:
        read(tmp_path, label_pattern=pattern)
    assert_one_sentence(error, tmp_path / "7_theo_0.wav", f"does not match --label-pattern {pattern!r}")


def test_with_a_pattern_folders_may_be_parts_and_are_no_classes(tmp_path):
    save(tmp_path, "test/x_1.wav", "train/deep/y_2.wav", "else/x_3.wav", "unlabeled/what.wav")
    assert found_in(tmp_path, label_pattern="{label}_?") == [
        ("else/x_3.wav", "x", None), ("train/deep/y_2.wav", "y", "train"), ("test/x_1.wav", "x", "test"),
        ("unlabeled/what.wav", None, "unlabeled"),
    ]  # fmt: skip


@pytest.mark.parametrize("pattern", ["", "*", "label", "{label}{label}", "{Label}_*"])
def test_a_pattern_without_exactly_one_label_is_refused(pattern):
    with pytest.raises(ValueError, match=r"label_pattern is .*; it must have \{label\} in it once"):
        DataConfig(data="x", label_pattern=pattern)


@pytest.mark.parametrize("header", ["file,label", "Path,class", "file_name,Label", "id,wav,emotion", "recording,y"])
def test_a_table_names_the_files_and_their_labels(tmp_path, header):
    save(tmp_path, "sounds/a.wav", "b.wav")
    before = "1," if header.startswith("id") else ""
    path = write_table(tmp_path / "labels.csv", f"{before}sounds/a.wav,cat", f"{before}b.wav,", header=header)
    assert found_in(path) == [("sounds/a.wav", "cat", None), ("b.wav", None, None)]
    assert read(path).description.startswith("table of audio files, 2 recordings, 1 class, 8,000 samples a second")


def test_tables_may_be_tsv_or_json_lines_and_name_the_label_column(tmp_path):
    save(tmp_path, "a.wav")
    write_table(tmp_path / "a.tsv", "a.wav\tx\ty", header="file\tword\tspeaker")
    (tmp_path / "a.jsonl").write_text('{"speaker": "y", "audio": "a.wav"}\n')
    for name in ("a.tsv", "a.jsonl"):
        assert found_in(tmp_path / name, label_column="speaker") == [("a.wav", "y", None)]


def test_a_folder_of_tables_for_each_part_and_a_test_table_work(tmp_path):
    save(tmp_path, "a.wav", "b.wav")
    write_table(tmp_path / "train.csv", "a.wav,x", "b.wav,y")
    write_table(tmp_path / "test.csv", "b.wav,y")
    assert [part for *_, part in found_in(tmp_path)] == ["train", "train", "test"]
    config = DataConfig(data=str(tmp_path / "train.csv"), test_data=tmp_path / "test.csv")
    assert [source.part for source in find_sources(config)] == [None, "test"]
    assert len(load(config).table.label_N) == 3


def test_a_table_of_texts_that_mention_files_stays_a_table_of_texts(tmp_path):
    path = write_table(tmp_path / "a.csv", "listen to a.wav,x", "b.wav,y", header="text,label")
    assert isinstance(read(path).format, TextFormat)
    path = write_table(tmp_path / "b.csv", "some words,x", "others,y", header="path,label")
    assert isinstance(read(path, text_column="path").format, TextFormat)


def test_a_file_that_a_table_names_in_vain_is_refused_with_its_line(tmp_path, assert_one_sentence):
    save(tmp_path, "a.wav")
    path = write_table(tmp_path / "a.csv", "a.wav,x", "nope.wav,y")
    with pytest.raises(RunError) as error:
        read(path)
    assert_one_sentence(error, f"{path}, line 3 names 'nope.wav', which is no file", "relative to the table's folder")


def test_the_cache_knows_a_recording_that_changed_behind_its_table(tmp_path):
    save(tmp_path, "a.wav", "b.wav")
    path = write_table(tmp_path / "a.csv", "a.wav,x", "b.wav,y")
    assert find(path).files == [path, tmp_path / "a.wav", tmp_path / "b.wav"]
    before = load(DataConfig(data=str(path)))
    save_wav(tmp_path / "a.wav", tone(99))
    after = load(DataConfig(data=str(path)))
    assert (before.table.begin_N1[1], after.table.begin_N1[1]) == (400, 99)


def test_another_rate_is_refused_with_both_and_the_flag(tmp_path, assert_one_sentence):
    save(tmp_path, "x/a.wav")
    save(tmp_path, "y/b.wav", rate=16_000)
    with pytest.raises(RunError) as error:
        read(tmp_path)
    said = f"{tmp_path}/y/b.wav has 16,000 samples a second where {tmp_path}/x/a.wav has 8,000; give --sample-rate 8000"
    assert_one_sentence(error, said)


def test_the_first_training_file_decides_the_rate(tmp_path):
    save(tmp_path, "test/x/a.wav")
    save(tmp_path, "train/x/b.wav", rate=16_000)
    problems = Problems(is_patient=True)
    assert read(tmp_path, problems=problems).format.sample_rate == 16_000
    assert [sentence.split(" has ")[0] for sentence in problems.refused] == [f"{tmp_path}/test/x/a.wav"]


def test_a_sample_rate_resamples_all(tmp_path):
    save(tmp_path, "x/a.wav")
    save(tmp_path, "y/b.wav", rate=16_000)
    understood = read(tmp_path, sample_rate=4000)
    assert [len(example.value_T) for example in understood.examples] == [200, 100]
    assert understood.format.sample_rate == 4000
    assert find(tmp_path, sample_rate=4000).options != find(tmp_path).options


def test_new_recordings_come_at_the_rate_of_training(tmp_path):
    path, like = save_wav(tmp_path / "a.wav", rate=16_000), SeriesFormat(1, (0.0,), (1.0,), sample_rate=8000)
    understood = read(path, like=like, has_labels=False)
    assert understood.format == like
    assert [len(example.value_T) for example in understood.examples] == [200]


@pytest.mark.parametrize("like", [SeriesFormat(1), TextFormat()])
def test_a_model_of_other_data_is_not_given_recordings(tmp_path, assert_one_sentence, like):
    with pytest.raises(UsageError) as error:
        read(save_wav(tmp_path / "a.wav"), like=like, has_labels=False)
    assert_one_sentence(error, "a.wav holds audio", "same kind")


def test_other_channels_are_refused(tmp_path, assert_one_sentence):
    save(tmp_path, "x/a.wav", "y/a.wav")
    save_wav(tmp_path / "y" / "b.wav", tone(channels=2))
    with pytest.raises(RunError) as error:
        read(tmp_path)
    assert_one_sentence(error, "y/b.wav has 2 channels instead of 1 channel", "same channels")


def test_damaged_recordings_are_skipped_and_counted_and_an_empty_class_is_refused(tmp_path, assert_one_sentence):
    save(tmp_path, "x/a.wav", "y/a.wav")
    (tmp_path / "x" / "b.wav").write_bytes(b"RIFF")
    problems = Problems()
    assert len(list(read(tmp_path, problems=problems).examples)) == 2
    said = f"{tmp_path}/x/b.wav cannot be read as audio (it is damaged or of another kind)"
    assert (problems.num_skipped, problems.skipped) == (1, [said])
    (tmp_path / "x" / "a.wav").unlink()
    with pytest.raises(RunError) as error:
        list(read(tmp_path).examples)
    assert_one_sentence(error, f"{tmp_path}/x has no recordings that can be read")


def test_a_single_damaged_recording_is_refused(tmp_path, assert_one_sentence):
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    with pytest.raises(RunError) as error:
        read(tmp_path / "a.wav", has_labels=False)
    assert_one_sentence(error, tmp_path / "a.wav", "cannot be read as audio")


def test_recordings_without_labels_are_told_the_three_ways_to_give_them(tmp_path, assert_one_sentence):
    save(tmp_path, "a.wav")
    assert found_in(tmp_path, has_labels=False) == [("a.wav", None, None)]
    with pytest.raises(RunError) as error:
        read(tmp_path)
    assert_one_sentence(error, "has no class folders", "sub-folder", "--label-pattern '{label}_*'", "table")
    with pytest.raises(UsageError) as error:
        find(tmp_path / "a.wav")
    assert_one_sentence(error, "single recording", "give the folder it is in")


@pytest.mark.parametrize("below", [".", "clips", "train"])
def test_a_folder_whose_labels_stand_in_a_table_beside_is_told_its_name(tmp_path, assert_one_sentence, below):
    save(tmp_path, f"{below}/a.wav", f"{below}/b.wav")
    (tmp_path / "damaged.csv").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "about.csv").write_text("file,kind\nabout.txt,text\n")
    table = write_table(tmp_path / "labels.csv", f"{below}/a.wav,cat", f"{below}/b.wav,dog")
    with pytest.raises(RunError) as error:
        read(tmp_path)
    assert_one_sentence(error, "class folder", f"give {table} instead, the table that names them")
    assert [example.label for example in read(table).examples] == ["cat", "dog"]


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        (".", {"image_size": 3}), (".", {"tokens": "bytes"}), (".", {"label_column": "a"}),
        ("a.csv", {"label_pattern": "{label}"}), ("a.csv", {"text_column": "file"}), ("t.csv", {"sample_rate": 9}),
        ("t.csv", {"label_pattern": "{label}"}),
    ],
)  # fmt: skip
def test_an_option_that_has_no_effect_is_refused(tmp_path, assert_one_sentence, name, asked):
    save(tmp_path, "x/a.wav")
    write_table(tmp_path / "a.csv", "x/a.wav,x")
    write_table(tmp_path / "t.csv", "word,x", header="text,label")
    with pytest.raises(UsageError) as error:
        find(tmp_path / name, **asked)
    assert_one_sentence(error, f"{next(iter(asked))} has no effect on")


def test_a_run_to_start_from_must_have_the_same_rate(assert_one_sentence):
    fitted = SeriesFormat(1, (0.0,), (1.0,), sample_rate=8000)
    assert adopt(SeriesFormat(1, sample_rate=8000), fitted) == fitted
    with pytest.raises(UsageError) as error:
        adopt(SeriesFormat(1, sample_rate=16_000), fitted)
    assert_one_sentence(error, "8,000", "--sample-rate 8000")


def test_three_thousand_spoken_digits_open_in_seconds(shared_fsdd):
    start = time.process_time()
    understood = read(shared_fsdd, label_pattern="{label}_{speaker}_{index}")
    lengths, labels = zip(*((len(e.value_T), e.label) for e in understood.examples), strict=True)
    assert (len(lengths), min(lengths), max(lengths)) == (3000, 1148, 18_262)
    assert {label: labels.count(label) for label in labels} == dict.fromkeys("0123456789", 300)
    assert time.process_time() - start < 20
