"""The mistakes that only the dtype system knows; all of them are user errors."""

from __future__ import annotations

from ..errors import UserError


class SealedError(UserError, AttributeError):
    """An assignment or deletion on a descriptor, rule or class that can no longer change."""


class OwnedMemberError(UserError, TypeError, AttributeError):
    """A member of the framework that an extension redefines, hides or assigns."""


class UnregisteredDTypeError(UserError, TypeError, ValueError):
    """A reference to a descriptor that is not registered, such as one of a failed constructor.

    It is of the wrong type for a reference and a value that no registry knows; both families of
    handlers see it.
    """


class UnknownDTypeError(UserError, LookupError):
    """A name that no registered descriptor of the asked kind has."""
