"""Disks and object stores: small durable operations, and what they refuse."""
