import QtQuick
import QtQuick.Controls.Basic

AbstractButton {
    id: button
    property bool on: false
    property int badge: 0
    property string keys: ""
    implicitHeight: 32
    Accessible.name: text + (badge > 0 ? ", " + badge + " waiting" : "")
    ToolTip.visible: hovered && keys !== ""
    ToolTip.text: keys
    ToolTip.delay: 600
    background: Rectangle {
        radius: 6
        color: button.on ? look.c.selected : button.hovered ? look.c.hover : "transparent"
        border.width: button.visualFocus ? 2 : 0
        border.color: look.c.accent
    }
    contentItem: Item {
        Text {
            anchors { left: parent.left; leftMargin: 8; verticalCenter: parent.verticalCenter }
            text: button.text
            color: look.c.text
        }
        Rectangle {
            visible: button.badge > 0
            anchors { right: parent.right; rightMargin: 8; verticalCenter: parent.verticalCenter }
            width: Math.max(20, count.implicitWidth + 12)
            height: 18
            radius: 9
            color: look.c.attention
            Text { id: count; anchors.centerIn: parent; text: button.badge; color: look.c.on_accent; font.pixelSize: 11; font.bold: true }
        }
    }
}
