"""Metrics whose label values are checked by a type checker, for who wants them.

A class names the labels and their types::

    @dataclass
    class Order:
        method: Literal["card", "cash"]
        country: str

    ORDERS = labelled(Counter, Order, "orders", "Orders accepted.")
    ORDERS.labels(method="card", country="pe").inc()

A checker refuses ``method="cheque"``, a label that is missing, and one that is not there. Nothing of it
costs anything at run time: no object of the class is made, and ``labels`` is the metric's own.
"""

import enum
import inspect
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast, get_type_hints

__all__ = ["Labelled", "labelled"]

P = ParamSpec("P")


class _Metric(Protocol):
    def labels(self, *labelvalues: object, **labelkwargs: object) -> Any: ...
    def remove(self, *labelvalues: object) -> None: ...


M = TypeVar("M", bound=_Metric)


class Labelled(Generic[P, M]):
    """A metric with typed labels."""

    metric: M
    """The metric itself, for what needs no labels."""
    labels: Callable[P, M]
    """The series of these label values, made at the first time."""
    remove: Callable[P, None]
    """Removes the series of these label values, in all processes."""

    def __init__(self, metric: M, signature: inspect.Signature, has_enums: bool) -> None:
        self.metric = metric

        def remove(*args: object, **kwargs: object) -> None:
            metric.remove(*map(_value, signature.bind(*args, **kwargs).arguments.values()))

        def labels(*args: object, **kwargs: object) -> Any:
            return metric.labels(*map(_value, args), **{name: _value(of) for name, of in kwargs.items()})

        self.labels = cast(Callable[P, M], labels if has_enums else metric.labels)
        self.remove = cast(Callable[P, None], remove)


def _value(of: object) -> object:
    return of.value if isinstance(of, enum.Enum) else of


def labelled(
    kind: Callable[..., M],
    labels: Callable[P, object],
    name: str,
    documentation: str,
    **options: Any,
) -> Labelled[P, M]:
    """Defines a metric whose label names are the parameters of a class: of a dataclass, a ``NamedTuple``
    or any other whose ``__init__`` names them.

    ``kind`` is the class of the metric, ``options`` are those of its constructor. The values of an
    ``Enum`` are shown rather than its members. A TypeError if the class has a parameter with a default,
    or one without a name: every label of a series has a value.
    """
    signature = inspect.signature(labels)
    for parameter in signature.parameters.values():
        if parameter.default is not parameter.empty:
            raise TypeError(f"the label {parameter.name} of {labels} has a default; a label has none")
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            raise TypeError(f"the label {parameter.name} of {labels} is {parameter.kind.description}")
    hints = get_type_hints(labels) if isinstance(labels, type) else {}
    has_enums = any(isinstance(hint, type) and issubclass(hint, enum.Enum) for hint in hints.values())
    metric = kind(name, documentation, tuple(signature.parameters), **options)
    return Labelled(metric, signature, has_enums)
