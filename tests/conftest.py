"""Every test runs on one thread and from the same seed; hypothesis sets no deadlines, since the machine may be busy.

Decoded data is cached in a folder of the test session, never in the user's.
"""

import os

import hypothesis
import pytest
import torch

hypothesis.settings.register_profile("busy machine", deadline=None)
hypothesis.settings.load_profile("busy machine")


@pytest.fixture(autouse=True)
def _one_thread_and_seeded():
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    base = tmp_path_factory.getbasetemp()
    # The processes of one session share it, as two runs of a user would.
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUXRNN_CACHE_DIR", str(root / "decoded"))
        yield
