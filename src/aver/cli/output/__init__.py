"""Everything that a command shows goes through here: commands build data and never print."""
