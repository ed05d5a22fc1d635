"""Reading edge lists: good rows, and ids turned into numbers."""
