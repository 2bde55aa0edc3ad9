import QtQuick
import QtQuick.Controls.Basic

// A choice of yes or no. What it shows is what holds: it waits to be told.
AbstractButton {
    id: tick
    property bool on: false
    signal asked(bool on)
    implicitHeight: 26
    implicitWidth: label.implicitWidth + 34
    focusPolicy: Qt.StrongFocus
    Accessible.role: Accessible.CheckBox
    Accessible.name: text
    Accessible.checked: on
    onClicked: tick.asked(!tick.on)
    Keys.onReturnPressed: clicked()
    background: Rectangle {
        radius: 6
        color: tick.hovered ? look.c.hover : "transparent"
        border.width: tick.visualFocus ? 2 : 0
        border.color: look.c.accent
    }
    contentItem: Item {
        Rectangle {
            id: box
            width: 14
            height: 14
            x: 6
            radius: 4
            anchors.verticalCenter: parent.verticalCenter
            color: tick.on ? look.c.accent : look.c.sunken
            border.color: tick.on ? look.c.accent : look.c.ended
            Text { anchors.centerIn: parent; visible: tick.on; text: "✓"; color: look.c.on_accent; font.pixelSize: 11; font.bold: true }
        }
        Text {
            id: label
            anchors { left: box.right; leftMargin: 8; verticalCenter: parent.verticalCenter }
            text: tick.text
            color: look.c.text
        }
    }
}
