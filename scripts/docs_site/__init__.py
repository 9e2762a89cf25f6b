"""What `scripts/docs` does: the pages as text, their translations, their links, and the site made of them."""
