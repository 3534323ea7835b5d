"""Every test runs on one thread and from the same seed; hypothesis sets no deadlines, since the machine may be busy."""

import hypothesis
import pytest
import torch

hypothesis.settings.register_profile("busy machine", deadline=None)
hypothesis.settings.load_profile("busy machine")


@pytest.fixture(autouse=True)
def _one_thread_and_seeded():
    torch.set_num_threads(1)
    torch.manual_seed(0)
