"""`auxrnn train` without any setting learns what a forest on statistics of each series cannot know."""

import json

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from command import call

pytestmark = pytest.mark.slow
NUM_TRAIN, NUM_TEST, NUM_STEPS = 300, 200, 60
NAMES = ("falls", "rises")


def saws_of(num_rows, *, seed):
    """Noisy saws of any period and phase that rise slowly or fall slowly: the same values, the other way round."""
    rng = np.random.default_rng(seed)
    label_N = np.arange(num_rows) % 2
    period_N1 = rng.uniform(8, 16, (num_rows, 1))
    saw_NT = (np.arange(NUM_STEPS) / period_N1 + rng.uniform(size=(num_rows, 1))) % 1
    saw_NT = np.where(label_N[:, None] == 1, saw_NT, saw_NT[:, ::-1])
    return (saw_NT + 0.1 * rng.standard_normal(saw_NT.shape)).astype(np.float32), label_N


def describe(x_NT):
    statistics = [x_NT.mean(1), x_NT.std(1), x_NT.min(1), x_NT.max(1), *np.quantile(x_NT, (0.25, 0.5, 0.75), axis=1)]
    return np.stack(statistics, axis=1)


def write_arrays(folder):
    for part, size, seed in (("train", NUM_TRAIN, 0), ("test", NUM_TEST, 1)):
        x_NT, label_N = saws_of(size, seed=seed)
        np.savez(folder / f"{part}.npz", x=x_NT, y=np.array(NAMES)[label_N])
    return [folder / "train.npz", "--test-data", folder / "test.npz"]


def write_ts(folder):
    for part, size, seed in (("TRAIN", NUM_TRAIN, 0), ("TEST", NUM_TEST, 1)):
        head = ["@problemName Saws", "@univariate true", f"@classLabel true {' '.join(NAMES)}", "@data"]
        rows = zip(*saws_of(size, seed=seed), strict=True)
        lines = [",".join(f"{value:.4f}" for value in x_T) + f":{NAMES[label]}" for x_T, label in rows]
        (folder / f"Saws_{part}.ts").write_text("\n".join([*head, *lines]) + "\n")
    return [folder / "Saws_TRAIN.ts"]


@pytest.mark.parametrize("write", [write_arrays, write_ts])
def test_series_are_told_apart_that_a_forest_on_seven_statistics_cannot(write, tmp_path):
    (x_NT, label_N), (test_NT, test_N) = saws_of(NUM_TRAIN, seed=0), saws_of(NUM_TEST, seed=1)
    forest = RandomForestClassifier(random_state=0).fit(describe(x_NT), label_N)
    result = call("train", *write(tmp_path), "--minutes", "1", "--json", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    accuracy = json.loads(result.out)["test_accuracy"]
    assert accuracy > 100 * forest.score(describe(test_NT), test_N) + 10
    assert accuracy > 90


def test_texts_are_told_apart_clearly_above_the_majority_class(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["text,label"]
    for row in range(500):
        # The same letters in both classes: only which stands before the other tells.
        pairs = ["ab" if row % 2 else "ba", *rng.choice(list("cdefgh "), 20)]
        lines.append(f"{''.join(rng.permutation(pairs))},{NAMES[row % 2]}")
    (tmp_path / "texts.csv").write_text("\n".join(lines) + "\n")
    result = call("train", tmp_path / "texts.csv", "--minutes", "1", "--json", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert json.loads(result.out)["test_accuracy"] > 80
