"""Public numbers that both sides of the privacy wall use: budgets, noisy answers and their noise laws, estimates."""
