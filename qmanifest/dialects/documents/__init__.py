"""Config files as documents: where they lie, what their keys may be, their twins."""
