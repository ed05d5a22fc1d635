"""Toy graphs with known answers, slow references, Hypothesis strategies and parity asserts."""
