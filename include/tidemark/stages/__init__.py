"""The steps of a run, pure of vendors: they speak to the world through the ports."""
