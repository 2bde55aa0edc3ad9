"""Ways to reach a person's desktop: started here, bundled with us, or across a container's bridge.

`mode` settles which one, `discover` finds programs, `launch` starts one, and all of them speak the same interface (`base`),
so that the interactive route never asks which it has. `pool` keeps connections.
"""
