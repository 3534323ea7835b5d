"""One short training for each system, which must clearly beat chance; run as a program, three seeds of each.

    python tests/learning_checks.py results/learning

writes `accuracy.json`: test accuracies in percent, commands, and how long they took. The slow tests run seed 0.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

DBPEDIA_PART = Path(__file__).parents[2] / "shared" / "data" / "dbpedia_part"
SEEDS = (0, 1, 2)
NUM_AT_ONCE = 2


class Check(NamedTuple):
    """The words after `auxrnn train`, the accuracy of a guess, and the accuracies between which it must end."""

    words: str
    chance: float
    least: float
    most: float = 100.0


_DIGITS = "digits --hidden-size 64 --lr 2e-3"
_FULL = "--supervised-window full --gate-init chrono --batch-size 32"
_PRETRAINED = "--batch-size 64 --pretrain-steps 300 --train-steps 600"
_ATTENTION = "--batch-size 32 --warmup-steps 50 --lr 1e-3 --drop-connect 0"
_TEXTS = "dbpedia --pad-to 256 --batch-size 32"
_LSTM = "--model lstm --objective none --hidden-size 64 --batch-size 64 --lr 2e-3"
_CUT_RECALL = f"recall --length 40 {_LSTM} --supervised-window 8 --train-steps 3000"

CHECKS = {
    "lstm": Check(f"{_DIGITS} --model lstm --objective none {_FULL} --train-steps 600", 10, 20),
    "gru": Check(f"{_DIGITS} --model gru {_FULL} --train-steps 600", 10, 20),
    "irnn": Check("digits --model irnn --batch-size 64 --train-steps 1500", 10, 18),
    "urnn": Check("digits --model urnn --hidden-size 128 --batch-size 64 --train-steps 200", 10, 50),
    "transformer": Check(f"digits --image-size 7 --model transformer {_ATTENTION} --train-steps 400", 10, 40),
    "dmca": Check(
        f"digits --image-size 7 --model dmca {_ATTENTION} --block-length 16 --block-reach 8 --train-steps 300", 10, 30
    ),
    "lm_lstm": Check(f"{_DIGITS} --model lm_lstm {_PRETRAINED}", 10, 20),
    "sa_lstm": Check(f"{_DIGITS} --model sa_lstm {_PRETRAINED}", 10, 20),
    "conv_rnn": Check(
        f"{_TEXTS} --model conv_rnn --train-examples 700 --optimizer adam --lr 1e-3 --train-steps 400", 7.1, 18
    ),
    "char_cnn": Check(
        f"{_TEXTS} --model char_cnn --dropout 0.2 --train-examples 2800 --optimizer adam --lr 1e-4 --train-steps 1000",
        7.1,
        20,
    ),
    "vdcnn": Check(
        f"{_TEXTS} --model vdcnn --depth 9 --train-examples 2800 --optimizer adam --lr 1e-3 --train-steps 250", 7.1, 20
    ),
    "needle, LSTM cut at 8": Check(f"needle --length 40 {_LSTM} --supervised-window 8 --train-steps 2000", 10, 0, 16),
    "needle, LSTM": Check(f"needle --length 40 {_LSTM} --supervised-window full --train-steps 2000", 10, 90),
    "needle, iRNN": Check("needle --length 40 --model irnn --batch-size 64 --train-steps 1000", 10, 90),
    "needle, Transformer": Check(f"needle --length 40 --model transformer {_ATTENTION} --train-steps 300", 10, 90),
    "recall, LSTM cut at 8": Check(f"{_CUT_RECALL} --gate-init forget-one", 12.5, 0, 19),
    # Long memories that nothing has trained keep a trace of the letter, and a head can learn to read it.
    "recall, LSTM cut at 8, chrono gates": Check(f"{_CUT_RECALL} --gate-init chrono", 12.5, 15, 30),
    "recall, LSTM": Check(f"recall --length 40 {_LSTM} --supervised-window full --train-steps 3000", 12.5, 90),
    "recall, iRNN": Check("recall --length 40 --model irnn --batch-size 64 --train-steps 2000", 12.5, 30),
    "recall, Transformer": Check(f"recall --length 40 --model transformer {_ATTENTION} --train-steps 600", 12.5, 15),
    "adding, LSTM cut at 8": Check(f"adding --length 30 {_LSTM} --supervised-window 8 --train-steps 3000", 10, 90),
    "adding, LSTM": Check(f"adding --length 30 {_LSTM} --supervised-window full --train-steps 3000", 10, 90),
    "adding, Transformer": Check(f"adding --length 30 --model transformer {_ATTENTION} --train-steps 500", 10, 90),
}


def command_of(check: Check, seed: int, folder: str) -> list[str]:
    """Give the words after `auxrnn`."""
    last = ["--evaluate-every", "100000", "--threads", "1", "--seed", str(seed), "--out", folder, "--json"]
    data = ["--data-dir", str(DBPEDIA_PART)] if check.words.startswith("dbpedia") else []
    return ["train", *check.words.split(), *data, *last]


def accuracy_of(check: Check, seed: int, folder: Path) -> float:
    """Train in a process of its own and give the test accuracy in percent."""
    words = [sys.executable, "-m", "auxrnn", *command_of(check, seed, str(folder))]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return float(json.loads(done.stdout)["test_accuracy"])


def main(out: Path) -> None:
    """Run what is not recorded yet, two at a time, and record each as it ends."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / "accuracy.json"
    record = json.loads(path.read_text()) if path.exists() else {}

    def run(name: str, seed: int) -> None:
        check = CHECKS[name]
        start, folder = time.monotonic(), out / "runs" / f"{name}-{seed}"
        # What is there and not recorded was stopped on the way.
        shutil.rmtree(folder, ignore_errors=True)
        accuracy = accuracy_of(check, seed, folder)
        entry = record.setdefault(name, {"command": f"auxrnn train {check.words}", "chance": check.chance, "seeds": {}})
        entry["seeds"][str(seed)] = {"test_accuracy": accuracy, "seconds": round(time.monotonic() - start)}
        path.write_text(json.dumps(record, indent=1) + "\n")
        sys.stderr.write(f"{name} seed {seed}: {accuracy:.1f} %\n")

    with ThreadPoolExecutor(NUM_AT_ONCE) as pool:
        missing = [
            (name, seed)
            for seed in SEEDS
            for name in CHECKS
            if str(seed) not in record.get(name, {"seeds": {}})["seeds"]
        ]
        list(pool.map(lambda pair: run(*pair), missing))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
