"""Runs and files of data as bytes, which travel to machines that share no disk with the one that has them."""

import json
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path

from auxrnn import saved
from auxrnn.config import RunConfig, flatten
from auxrnn.data.catalog import DATASETS
from auxrnn.data.spec import DATA_DIR_VARIABLE, find_data_folder
from auxrnn.errors import RunError
from auxrnn.files import ASIDE, cannot_write, digest, expand, read_checked, read_sums, write_aside, write_sums
from auxrnn.training.record import newest_path

OWN_FILES = ("data", "test_data", "unlabeled", "init_from")
"""Settings that may name a user's own files."""

Files = Mapping[str, bytes]
"""What a folder holds, by name."""


def find_own_files(config: RunConfig) -> dict[str, Path]:
    """Return the absolute paths of a user's own files, by the setting that names them."""
    values = flatten(config)
    given = {name: values[name] for name in OWN_FILES if values[name] is not None}
    return {name: expand(path).absolute() for name, path in given.items() if path not in DATASETS}


def find_here(own: Mapping[str, Path], sent: Mapping[str, Files], folder: Path, *, is_shared: bool) -> dict[str, str]:
    """Return where these files are on this machine: those that were sent are written to `folder`."""
    found = {}
    for name, path in own.items():
        if name in sent and not (is_shared and path.exists()):
            ((file, content),) = sent[name].items()
            place = folder / "data" / digest(content)[:16] / file
            if not place.exists():
                write_aside(place, content)
        else:
            place = path if path.exists() else find_data_folder() / path.name
        if not place.exists():
            cure = f"or to the folder that {DATA_DIR_VARIABLE} names there"
            raise RunError(f"{path} is not there and too large to be sent; copy it to the same place, {cure}")
        found[name] = str(place)
    return found


def pack(run_folder: Path, *, has_checkpoint: bool) -> Files:
    """Return the files of a run, with its newest checkpoint if that is asked for."""
    paths = [path for path in run_folder.iterdir() if path.is_file() and not path.name.endswith(ASIDE)]
    if has_checkpoint and (newest := newest_path(run_folder / "checkpoints")) is not None:
        paths += [newest, newest.with_suffix(".json")]
    return {str(path.relative_to(run_folder)): path.read_bytes() for path in paths}


def unpack(files: Files, run_folder: Path, own: Mapping[str, str]) -> None:
    """Write a run into a folder, unless that holds it already at least as far; `own` files are elsewhere here."""
    is_begun = (run_folder / saved.CONFIG).exists()
    if saved.is_finished(run_folder) or (is_begun and saved.FINAL not in files):
        return
    aside = run_folder.with_name(f".{run_folder.name}.{uuid.uuid4().hex[:8]}{ASIDE}")
    try:
        for name, content in files.items():
            write_aside(aside / name, content)
        values = json.loads(read_checked(aside / saved.CONFIG)) | own
        text = json.dumps(values, indent=2) + "\n"
        write_sums(aside, read_sums(aside) | {saved.CONFIG: digest(text)})
        write_aside(aside / saved.CONFIG, text)
        shutil.rmtree(run_folder, ignore_errors=True)
        aside.rename(run_folder)
    except OSError as error:
        raise cannot_write(run_folder, error) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
