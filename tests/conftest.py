import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data sets, or a skip: they are not part of the repository."""
    named = os.environ.get("TULLE_DATA")
    if not named:
        pytest.skip("set TULLE_DATA to the folder of real data sets to run this test")
    folder = Path(named)
    if not folder.is_dir():
        pytest.skip(f"TULLE_DATA={named} is not a folder")
    return folder
