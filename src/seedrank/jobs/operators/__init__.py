"""What the methods run: each turns a block of queries into rankings."""
