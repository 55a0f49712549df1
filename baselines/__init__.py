"""Classic apprenticeship-learning methods, for comparison."""
