"""From edges to compressed adjacencies."""
