"""A plugin of pytest: says how often NetworkX has called each function of the backend."""

import collections

from socbfs import networkx_backend

CALLS = collections.Counter()


def pytest_configure():
    for name in networkx_backend.info()["functions"]:

        def counted(*args, _call=getattr(networkx_backend.backend, name), _name=name, **kwargs):
            CALLS[_name] += 1
            return _call(*args, **kwargs)

        setattr(networkx_backend.backend, name, staticmethod(counted))


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"calls of socbfs: {dict(CALLS)}")
