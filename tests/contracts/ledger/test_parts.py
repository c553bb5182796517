"""That every Ledger has the parts that the ports name, with parameters of the same names."""

import inspect
from typing import get_type_hints

import pytest

from fakes.ledger import PARTS
from tidemark.ports import ledger as ports
from tidemark.ports.ledger import Ledger


@pytest.mark.parametrize("part", PARTS)
def test_each_method_takes_what_its_port_says(ledger: Ledger, part: str) -> None:
    port = get_type_hints(getattr(Ledger, part).fget, vars(ports))["return"]
    methods = {
        name: m for name, m in vars(port).items() if inspect.isfunction(m) and name[0] != "_"
    }
    assert methods
    for name, method in methods.items():
        own = inspect.signature(getattr(getattr(ledger, part), name))
        assert list(own.parameters) == list(inspect.signature(method).parameters)[1:], name
