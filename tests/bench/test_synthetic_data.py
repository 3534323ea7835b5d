"""The data that benchmarks make looks like the real thing."""

import csv

import numpy as np
import pytest
from PIL import Image

from auxrnn.structs import Draws
from benchmarks.synthetic_data import NUM_PICTURES, DataSizes, draw_lengths, make_images, make_texts
from command import files_below


def test_lengths_are_spread_as_those_of_dbpedia():
    length_N = draw_lengths(50_000, mean=300, rng=Draws(0, "bench", 0).rng("texts"))
    assert length_N.mean() == pytest.approx(300, rel=0.01)
    assert np.quantile(length_N, [0.05, 0.5, 0.95]) == pytest.approx([80, 299, 510], rel=0.03)


def test_synthetic_texts_are_a_table_like_dbpedia_s(tmp_path):
    make_texts(tmp_path / "texts", DataSizes(num_texts=2_000, num_text_classes=14))
    assert files_below(tmp_path / "texts") == ["test.csv", "train.csv"]
    with (tmp_path / "texts" / "train.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, strict=True))
    assert {int(label) for label, _, _ in rows} == set(range(1, 15))
    texts = [f"{title} {text}" for _, title, text in rows]
    assert len(set(texts)) == len(rows) == 2_000
    assert np.mean([len(text) for text in texts]) == pytest.approx(300, rel=0.05)
    num_rare = sum(not character.isascii() for text in texts for character in text)
    assert num_rare / 600_000 == pytest.approx(0.006, rel=0.2)


def test_synthetic_images_are_files_that_all_differ(tmp_path):
    make_images(tmp_path / "images", DataSizes(num_images=400, image_size=16, num_image_classes=5))
    paths = sorted((tmp_path / "images").glob("*/*.jpg"))
    assert len({path.read_bytes() for path in paths}) == len(paths) == 400
    assert len({path.parent for path in paths}) == 5
    shown = set()
    for path in paths:
        with Image.open(path) as image:
            assert (image.format, image.mode, image.size) == ("JPEG", "RGB", (16, 16))
            shown.add(image.tobytes())
    assert len(shown) == NUM_PICTURES
