import QtQuick
import QtQuick.Controls.Basic

TextField {
    id: field
    property bool mono: false
    implicitHeight: 28
    topPadding: 4
    bottomPadding: 4
    leftPadding: 10
    color: look.c.text
    placeholderTextColor: look.c.text_soft
    selectionColor: look.c.accent
    selectedTextColor: look.c.on_accent
    font.family: mono ? "monospace" : Qt.application.font.family
    Accessible.name: placeholderText
    background: Rectangle {
        radius: 6
        color: look.c.sunken
        border.width: field.activeFocus ? 2 : 1
        border.color: field.activeFocus ? look.c.accent : look.c.edge
    }
}
