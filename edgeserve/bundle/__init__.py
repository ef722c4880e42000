"""Bundles: everything that is needed to serve a model on one kind of machine, in one folder.

`ensure.ensure` finds or builds one, `bundle.open_bundle` opens one, `cache` lists and prunes them.
"""
