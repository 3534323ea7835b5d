"""Synthetic datasets as large as real ones, made in a minute: texts like DBpedia's, images like Stanford Dogs'."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64
from PIL import Image

from auxrnn.structs import Draws

LONGEST_TITLE = 20
LENGTH_QUANTILES = {
    0.0: 10, 0.01: 51, 0.05: 75, 0.1: 97, 0.2: 139, 0.3: 187, 0.4: 234, 0.5: 280,
    0.6: 329, 0.7: 378, 0.8: 420, 0.9: 458, 0.95: 477, 0.99: 493, 0.999: 831, 1.0: 3598,
}  # fmt: skip
"""Characters of title and text together, measured on 12,038 articles of DBpedia."""
COMMON = (
    "The village lies in the north of the district, about 12 km from the town; in 2006 its population was 1,394. "
    'She is an American writer of novels, best known for the series "A Small House by the Sea" (1987). '
)
"""Characters are drawn from these, so that they are about as frequent as in a real text."""
RARE = [*map(chr, range(0xA1, 0x250)), *map(chr, range(0x391, 0x460)), *map(chr, range(0x4E00, 0x5400))]
RARE_SHARE = 0.006
"""How many characters of DBpedia are beyond ASCII; they are of some 1,900 kinds."""
POOL_CHARACTERS = 2**20
"""Texts are pieces of one long text: drawing each by itself would take minutes."""
NUM_PICTURES = 300
"""How many images look different; the files all differ."""


@dataclass(frozen=True, kw_only=True)
class DataSizes:
    """How much data is made. The defaults are those of the published figures: DBpedia's and ten times the dogs'."""

    num_texts: int = 560_000
    mean_characters: int = 300
    num_text_classes: int = 14
    num_images: int = 150_000
    image_size: int = 128
    num_image_classes: int = 120


def make_texts(folder: Path, sizes: DataSizes) -> None:
    """Write train.csv and test.csv (an eighth of it) as DBpedia has them: class from 1 on, title, text, no header."""
    folder.mkdir(parents=True)
    rng = Draws(0, "bench", 0).rng("texts")
    is_rare = (torch.rand(POOL_CHARACTERS, generator=rng) < RARE_SHARE).numpy()
    common, rare = (_draw(characters, rng) for characters in ([*COMMON], RARE))
    pool = "".join(np.where(is_rare, rare, common).tolist())
    for name, num_texts in (("train.csv", sizes.num_texts), ("test.csv", sizes.num_texts // 8)):
        length_N = draw_lengths(num_texts, mean=sizes.mean_characters, rng=rng)
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
            writer.writerows(_make_rows(pool, length_N, sizes.num_text_classes, rng))


def draw_lengths(num_texts: int, *, mean: int, rng: torch.Generator) -> Int64[np.ndarray, " N"]:
    """Draw lengths that are spread as DBpedia's are, stretched to another mean."""
    places, lengths = np.array(list(LENGTH_QUANTILES)), np.array(list(LENGTH_QUANTILES.values()))
    even = np.interp(np.linspace(0, 1, 10_001), places, lengths)
    drawn_N = np.interp(torch.rand(num_texts, generator=rng).numpy(), places, lengths)
    length_N: Int64[np.ndarray, " N"] = np.maximum(np.rint(drawn_N * mean / even.mean()), 4).astype(np.int64)
    return length_N


def make_images(folder: Path, sizes: DataSizes) -> None:
    """Write color images as `CLASS/*.jpg`; few look different, but each file has its number in it."""
    pictures = _draw_pictures(min(NUM_PICTURES, sizes.num_images), sizes.image_size)
    places = [folder / f"class_{number:03}" for number in range(sizes.num_image_classes)]
    for place in places:
        place.mkdir(parents=True)
    for number in range(sizes.num_images):
        picture = pictures[number % len(pictures)]
        # A comment comes right after the two bytes that every JPEG file begins with.
        comment = b"\xff\xfe" + (10).to_bytes(2) + number.to_bytes(8)
        (places[number % len(places)] / f"{number:06}.jpg").write_bytes(picture[:2] + comment + picture[2:])


def _draw(characters: list[str], rng: torch.Generator) -> Any:
    return np.array(characters)[torch.randint(len(characters), (POOL_CHARACTERS,), generator=rng).numpy()]


def _make_rows(
    pool: str, length_N: Int64[np.ndarray, " N"], num_classes: int, rng: torch.Generator
) -> Iterator[tuple[int, str, str]]:
    start_N = torch.randint(len(pool) - int(length_N.max()), (len(length_N),), generator=rng)
    for number, (start, length) in enumerate(zip(start_N.tolist(), length_N.tolist(), strict=True)):
        text = pool[start : start + length]
        cut = min(LONGEST_TITLE, length // 2)
        # A title and its text are read with a space between them, which takes the place of a character.
        yield 1 + number % num_classes, text[:cut], text[cut + 1 :]


def _draw_pictures(num_pictures: int, size: int) -> list[bytes]:
    """Return JPEG files of smooth patches of color with a little noise."""
    rng = Draws(0, "bench", 0).rng("pictures")
    pictures = []
    for _ in range(num_pictures):
        patches = torch.randint(256, (12, 12, 3), generator=rng).to(torch.uint8).numpy()
        smooth = np.asarray(Image.fromarray(patches).resize((size, size), Image.Resampling.BICUBIC), dtype=np.float32)
        noisy = smooth + 6.0 * torch.randn(size, size, 3, generator=rng).numpy()
        file = io.BytesIO()
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(file, "JPEG", quality=85)
        pictures.append(file.getvalue())
    return pictures
