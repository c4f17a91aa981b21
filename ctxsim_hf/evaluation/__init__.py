"""How well similarities agree with people: tasks, baselines, correlations with intervals."""
