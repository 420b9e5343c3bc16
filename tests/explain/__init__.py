"""Tests of explanations and profiles."""
