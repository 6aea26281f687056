# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin (``-p tests.mutation.chosen``) that runs the tests of a list, in its order.

Named one by one, a case that a faulty table no longer has would end the run: here it is passed over.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable

import pytest

#: The environment's word for the file of the list: a test, or a file of tests, a line.
CHOSEN = "UIR_CHOSEN_TESTS"


def functions(tests: Iterable[str]) -> list[str]:
    """What to tell pytest to collect for some tests: their functions, without the cases."""
    return list(dict.fromkeys(test.partition("[")[0] for test in tests))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the listed tests."""
    place = {test: k for k, test in enumerate(pathlib.Path(os.environ[CHOSEN]).read_text().splitlines())}

    def key(item: pytest.Item) -> int | None:
        function, file = functions([item.nodeid])[0], item.nodeid.partition("::")[0]
        named = (name for name in (item.nodeid, function, file) if name in place)
        return next((place[name] for name in named), None)

    keys = {item: key(item) for item in items}
    config.hook.pytest_deselected(items=[item for item in items if keys[item] is None])
    items[:] = sorted((item for item in items if keys[item] is not None), key=lambda item: keys[item] or 0)
