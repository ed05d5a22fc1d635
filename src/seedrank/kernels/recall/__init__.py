"""Walks and traversals: bounded recall from anchors."""
