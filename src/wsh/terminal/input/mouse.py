"""What the mouse does, as the bytes the program asked for (or none, if it did not ask)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from wsh.terminal.engine import native
from wsh.terminal.engine.native import NULL, Native, check, ffi, lib
from wsh.terminal.input.key import ALT, CTRL, SHIFT

if TYPE_CHECKING:
    from wsh.terminal.terminal import Terminal

MouseAction: TypeAlias = Literal["press", "release", "motion"]
MouseButton: TypeAlias = Literal["left", "right", "middle", "wheel_up", "wheel_down", "wheel_left", "wheel_right"]

_ACTIONS = {
    "press": lib.GHOSTTY_MOUSE_ACTION_PRESS,
    "release": lib.GHOSTTY_MOUSE_ACTION_RELEASE,
    "motion": lib.GHOSTTY_MOUSE_ACTION_MOTION,
}
_BUTTONS = {
    "left": lib.GHOSTTY_MOUSE_BUTTON_LEFT,
    "right": lib.GHOSTTY_MOUSE_BUTTON_RIGHT,
    "middle": lib.GHOSTTY_MOUSE_BUTTON_MIDDLE,
    "wheel_up": lib.GHOSTTY_MOUSE_BUTTON_FOUR,
    "wheel_down": lib.GHOSTTY_MOUSE_BUTTON_FIVE,
    "wheel_left": lib.GHOSTTY_MOUSE_BUTTON_SIX,
    "wheel_right": lib.GHOSTTY_MOUSE_BUTTON_SEVEN,
}

_encoder: Native = ffi.new("GhosttyMouseEncoder*")
_event: Native = ffi.new("GhosttyMouseEvent*")
check(lib.ghostty_mouse_encoder_new(NULL, _encoder), "mouse_encoder_new")
check(lib.ghostty_mouse_event_new(NULL, _event), "mouse_event_new")
_size: Native = native.new_sized("GhosttyMouseEncoderSize")
_position: Native = ffi.new("GhosttyMousePosition*")
_held: Native = ffi.new("bool*")
_buffer = ffi.new("char[]", 128)
_length = ffi.new("size_t*")


def encode_mouse(
    terminal: Terminal,
    action: MouseAction,
    row: int,
    col: int,
    button: MouseButton | None = None,
    *,
    shift: bool = False,
    alt: bool = False,
    ctrl: bool = False,
) -> bytes:
    """A mouse event at a cell, counted from 0, in the mode and format that the program chose."""
    encoder, event, sink = _encoder[0], _event[0], terminal._sink
    lib.ghostty_mouse_encoder_reset(encoder)
    lib.ghostty_mouse_encoder_setopt_from_terminal(encoder, terminal.handle)
    _size.cell_width, _size.cell_height = sink.cell_width, sink.cell_height
    _size.screen_width, _size.screen_height = sink.cell_width * terminal.cols, sink.cell_height * terminal.rows
    lib.ghostty_mouse_encoder_setopt(encoder, lib.GHOSTTY_MOUSE_ENCODER_OPT_SIZE, _size)
    _held[0] = action == "press" or (action == "motion" and button is not None)
    lib.ghostty_mouse_encoder_setopt(encoder, lib.GHOSTTY_MOUSE_ENCODER_OPT_ANY_BUTTON_PRESSED, _held)
    lib.ghostty_mouse_event_set_action(event, _ACTIONS[action])
    if button is None:
        lib.ghostty_mouse_event_clear_button(event)
    else:
        lib.ghostty_mouse_event_set_button(event, _BUTTONS[button])
    lib.ghostty_mouse_event_set_mods(event, (SHIFT if shift else 0) | (ALT if alt else 0) | (CTRL if ctrl else 0))
    row, col = min(max(0, row), terminal.rows - 1), min(max(0, col), terminal.cols - 1)
    _position.x = (col + 0.5) * sink.cell_width
    _position.y = (row + 0.5) * sink.cell_height
    lib.ghostty_mouse_event_set_position(event, _position[0])
    check(lib.ghostty_mouse_encoder_encode(encoder, event, _buffer, len(_buffer), _length), "mouse_encode")
    return bytes(ffi.buffer(_buffer, _length[0]))
