"""Numbers: `reference` (exact, numpy) and `pytorch`; both judged by the same tests."""
