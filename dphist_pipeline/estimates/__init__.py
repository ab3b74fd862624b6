"""Public numbers below both sides of the wall: budgets, noisy answers with their laws, estimates."""
